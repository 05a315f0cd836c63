"""Up and down; with scales."""

CASES = {
    "aten::upsample_linear1d_backward": [
        ("f32[2,3,23]", [23], [2, 3, 9], True),
        ("f32[2,3,4]", [4], [2, 3, 9], False),
        ("f32[2,3,23]", [23], [2, 3, 9], False, 2.5),
    ],
}
