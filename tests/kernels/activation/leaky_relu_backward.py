"""Layouts and special values."""

CASES = {
    "aten::leaky_relu_backward": [
        ("f32[33,70]{1,33}", "f32[33,70]{1,33}", 0.1, False),
        ("f32(1, 1, 1, 1, nan, 1, 2, 1, 1)", "f32(nan, inf, -inf, -0., 0.5, -1.5, 30, -30, 3)", 0.1, False),
        ("bf16[40,30]", "bf16[40,30]", 0.1, False),
        ("f64[7,9]", "f64[7,9]", 0.1, False),
        ("f32[9]", "f32[9]", 0.5, True),
    ],
}
