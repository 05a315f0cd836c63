"""Up and down; with scales."""

CASES = {
    "aten::_upsample_nearest_exact1d": [
        ("f32[2,3,9]", [23]),
        ("f32[2,3,9]", [4]),
        ("f32[2,3,9]", [23], 2.5),
        ("f32[2,3,9]", [18]),
    ],
}
