"""With and without replacement, of rows and of one; weights of 0."""

CASES = {
    "aten::multinomial": [
        ("f32[40,50]u", 50, True),
        ("f32[500,6]u", 3),
        ("f32(0.5, 0., 3., 1., 0., 0.25)", 4),
        ("bf16[700]u", 1000, True),
        ("f64[6,90]{1,6}u", 40),
        ("f16[700,8]u", 1),
    ],
}

FAULTS = {
    "any of weight 0": ('drawn, float("inf"))', "drawn, 1.0)"),
    "weights do not matter": ("/ tl.where(weight > 0, weight, 1.0)", "/ 1.0"),
    "squares": ("return u * total", "return u * u * total"),
    "the slowest": ("self.device), indices])[1]", "self.device), indices], True)[1]"),
}
REFUSED = {"aten::multinomial": [("f32[16777217]{0}u", 1, True)]}
