"""Layouts and special values."""

CASES = {
    "aten::glu_backward": [
        ("f32[33,35]", "f32[33,70]", -1),
        ("bf16[4,3,5]", "bf16[4,6,5]", 1),
        ("f64[4]", "f64[8]", 0),
    ],
}
