"""Means, deviations, types and layouts."""

CASES = {
    "aten::log_normal": [
        ("f32[33,250]", 1.0, 2.0),
        ("f32[250,33]{1,250}", -1.0, 0.25),
        ("bf16[33,250]", 0.0, 0.5),
        ("f16[33,250]", 1.0, 2.0),
        ("f64[33,250]", 0.5, 0.1),
    ],
}

FAULTS = {
    "a normal number": ("tl.exp(mean + std * z)", "mean + std * z"),
    "the variance": ("mean + std * z", "mean + std * std * z"),
    "another mean": ("mean + std * z", "mean + std * (z + 0.05)"),
}
