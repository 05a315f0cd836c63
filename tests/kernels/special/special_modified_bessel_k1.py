"""Both sides of where formulas meet; special values."""

CASES = {
    "aten::special_modified_bessel_k1": [
        ("f32[33,70]u",),
        ("f32(nan, inf, -1, 0., 0.5, 1.5, 2, 3, 30)",),
        ("f64[7,9]u",),
        ("i32(1, 2, 3)",),
    ],
}
