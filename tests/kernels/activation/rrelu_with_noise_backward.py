"""By noise, by the mean slope, layouts and special values."""

CASES = {
    "aten::rrelu_with_noise_backward": [
        ("f32[33,70]{1,33}", "f32[33,70]", "f32[33,70]u", 0.125, 0.25, True, False),
        ("f32(1, 1, nan, 1, 2)", "f32(nan, -inf, 1, -0., -3)", "f32(1, 0.2, 1, 0.2, nan)", 0.125, 0.25, False, False),
        ("bf16[40,30]", "bf16[40,30]", "bf16[40,30]u", 0.25, 0.25, True, True),
        ("f16[40,30]", "f16[40,30]", "f16[40,30]u", 0.1, 0.5, False, True),
        ("f64[7,9]", "f64[7,9]", "f64[7,9]u", 0.1, 0.3, True, False),
    ],
}
FAULTS = {
    "noise when not training": ("if training:", "if upper > lower:"),
    "the lower bound": ("(lower + upper) / 2", "lower"),
}
