"""Up and down; infinite gradients; with scales."""

CASES = {
    "aten::upsample_trilinear3d_backward": [
        ("f32[2,3,11,9,15]", [11, 9, 15], [2, 3, 5, 6, 7], True),
        ("f32[2,3,2,4,3]", [2, 4, 3], [2, 3, 5, 6, 7], False),
        ("f32[2,3,11,9,15]", [11, 9, 15], [2, 3, 5, 6, 7], False, 2.5, 2.5, 2.5),
        ("f64[1,2,6,6,6]=inf", [6, 6, 6], [1, 2, 4, 4, 4], True),
    ],
}
