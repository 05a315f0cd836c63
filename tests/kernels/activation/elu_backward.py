"""Layouts and special values."""

CASES = {
    "aten::elu_backward": [
        ("f32[33,70]{1,33}", 1, 1, 1, False, "f32[33,70]{1,33}"),
        ("f32[9]", 0.5, 2, 3, True, "f32[9]"),
        ("bf16[40,30]", 1.5, 1, 1, False, "bf16[40,30]"),
        ("f64[9]", 1, 1, 1, True, "f64[9]"),
        ("f32(1, nan, 2, 1)", 1, 1, 1, False, "f32(nan, 1, -inf, -0.)"),
    ],
}
