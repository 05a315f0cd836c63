"""Up and down; infinite gradients; with scales."""

CASES = {
    "aten::upsample_bicubic2d_backward": [
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9], True),
        ("f32[2,3,3,5]", [3, 5], [2, 3, 7, 9], False),
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9], False, 2.5, 2.5),
        ("f64(1, 2, 3, 4, 5, 6, 7, 8, inf)[1,1,3,3]", [3, 3], [1, 1, 2, 2], False),
        ("f64[2,3,3,5]", [3, 5], [2, 3, 8, 8], False),
    ],
}
