"""Up and down; infinite gradients; with scales."""

CASES = {
    "aten::upsample_bilinear2d_backward": [
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9], True),
        ("f32[2,3,3,5]", [3, 5], [2, 3, 7, 9], False),
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9], False, 2.5, 2.5),
        ("f64[1,2,6,6]=inf", [6, 6], [1, 2, 4, 4], True),
        ("f64[2,3,3,5]", [3, 5], [2, 3, 4, 8], False),
    ],
}
