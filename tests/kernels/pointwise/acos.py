"""Layouts and special values."""

CASES = {
    "aten::acos": [
        ("f32[33,70]u",),
        ("bf16[4,5,6]u",),
        ("f32(1, -1, 0.5, -0., 1e-9, nan, 2)",),
        ("f64[9]u",),
    ],
}
