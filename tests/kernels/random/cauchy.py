"""Medians, scales, types and layouts."""

CASES = {
    "aten::cauchy": [
        ("f32[33,250]", 0.0, 1.0),
        ("f32[250,33]{1,250}", -4.0, 0.5),
        ("bf16[33,250]", 0.5, 3.0),
        ("f16[33,250]", 0.0, 1.0),
        ("f64[33,250]", 1.0, 2.0),
    ],
}

FAULTS = {
    "half of the range": ("angle = 3.141592653589793 * u", "angle = 1.5707963 * u"),
    "another median": ("median + sigma", "median + 0.2 + sigma"),
    "the sine": ("tl.sin(angle) / tl.cos(angle)", "tl.sin(angle)"),
}
