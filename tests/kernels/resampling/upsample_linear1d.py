"""Up and down; with scales."""

CASES = {
    "aten::upsample_linear1d": [
        ("f32[2,3,9]", [23], True),
        ("f32[2,3,9]", [4], False),
        ("f32[2,3,9]", [23], False, 2.5),
        ("f32[2,3,9]", [4], True),
    ],
}
