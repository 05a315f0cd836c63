"""Rates, types and layouts."""

CASES = {
    "aten::exponential": [
        ("f32[33,250]", 1.0),
        ("f32[250,33]{1,250}", 2.5),
        ("bf16[33,250]", 0.5),
        ("f16[33,250]", 3.0),
        ("f64[33,250]", 0.01),
    ],
}

FAULTS = {
    "the mean for the rate": ("least) / rate", "least) * rate"),
    "of 1 - u": ("-tl.log(u)", "-tl.log(1.0 - 0.9 * u)"),
    "negative": ("tl.maximum(-tl.log(u), least)", "tl.log(u)"),
    "a tenth more": ("least) / rate", "least) * 1.1 / rate"),
}
