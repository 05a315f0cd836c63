"""In training and not; slopes, types and layouts."""

CASES = {
    "aten::rrelu_with_noise_": [
        ("f32[33,250]", "f32[33,250]", 0.125, 0.3333333333333333, True),
        ("f32[33,250]", "f32[33,250]", 0.125, 0.25, False),
        ("bf16[33,250]", "bf16[33,250]", 0.0, 1.0, True),
        ("f64[250,33]", "f64[250,33]", -1.0, 0.5, True),
    ],
}

FAULTS = {
    "always in training": (
        "if not training:\n        return elementwise",
        "if training is None:\n        return elementwise",
    ),
    "the mean slope": ("between(u, low, high, u.dtype)", "between(0.5 + 0.0 * u, low, high, u.dtype)"),
    "not the noise": ("return x * slope, slope", "return x * slope, slope * 1.1"),
    "positive ones too": ("tl.where(x <= 0, between(u, low, high, u.dtype), 1.0)", "between(u, low, high, u.dtype)"),
}
