"""In training and not."""

CASES = {
    "aten::native_dropout": [
        ("f32[33,250]", 0.2, True),
        ("bf16[33,250]{1,33}", 0.5, True),
        ("f32[33,250]", 0.5, False),
        ("f32[33,250]", 1.0, None),
    ],
}
