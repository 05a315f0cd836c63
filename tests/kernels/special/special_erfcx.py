"""Both sides of where formulas meet; special values."""

CASES = {
    "aten::special_erfcx": [
        ("f32[33,70]{1,33}",),
        ("f32(nan, inf, -inf, -0., 0.5, -1.5, 7, 12, 30)",),
        ("f64[7,9]",),
        ("i32[40,9]",),
    ],
}
