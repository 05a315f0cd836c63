"""Up and down; with scales."""

CASES = {
    "aten::_upsample_nearest_exact1d_backward": [
        ("f32[2,3,23]", [23], [2, 3, 9]),
        ("f32[2,3,4]", [4], [2, 3, 9]),
        ("f32[2,3,23]", [23], [2, 3, 9], 2.5),
    ],
}
