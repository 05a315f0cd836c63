"""Few bins and many; ends of the range, what lies outside it, equal elements, none."""

OPINFO = 4
CASES = {
    "aten::histc": [
        ("f32[33,70]{1,33}", 7),
        ("f64[1500]u", 3000, 0.1, 0.7),
        ("f32(0, 1, 2, 3, -1, nan, 2.5, inf, -0.)", 3, 0, 3),
        ("f16[150]", 10, -1, 1),
        ("bf16[2,30]=3", 5),
        ("f32[0]", 5),
        ("f32[]", 2),
        ("i32(0, 5, 3, 3, 7, 7, 9, -1)", 8, 0, 7),
        ("i64[70]", 5),
    ],
}
FAULTS = {"no upper end": ("(x <= high)", "(x < high)")}
