"""Means and deviations."""

CASES = {
    "aten::normal_functional": [
        ("f32[33,250]", 1.0, 0.5),
        ("bf16[33,250]", 0.0, 0.02),
        ("f32[33,250]", 1.5, 0.0),
    ],
}
