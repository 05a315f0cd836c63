"""Both sides of where formulas meet; special values."""

CASES = {
    "aten::erfinv": [
        ("f32[33,70]u",),
        ("f32(nan, 1, -1, -0., 0.5, -0.999, 1e-6, 2)",),
        ("f64[7,9]u",),
        ("i32(0, 1, -1)",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f16[40]",),
    ],
}
