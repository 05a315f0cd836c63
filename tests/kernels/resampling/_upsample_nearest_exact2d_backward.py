"""Up and down; with scales."""

CASES = {
    "aten::_upsample_nearest_exact2d_backward": [
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9]),
        ("f32[2,3,3,5]", [3, 5], [2, 3, 7, 9]),
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9], 2.5, 2.5),
    ],
}
