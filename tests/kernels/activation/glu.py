"""Layouts and special values."""

CASES = {
    "aten::glu": [
        ("f32[33,70]",),
        ("bf16[4,6,5]", 1),
        ("f32[6,5]{1,6}", 0),
        ("f64[8]",),
    ],
}
