"""Up and down; infinite gradients; with scales."""

CASES = {
    "aten::upsample_linear1d_backward": [
        ("f64[1,2,6]=inf", [6], [1, 2, 4], True),
        ("f32[2,3,23]", [23], [2, 3, 9], True),
        ("f32[2,3,4]", [4], [2, 3, 9], False),
        ("f32[2,3,23]", [23], [2, 3, 9], False, 2.5),
        ("f64[2,3,5]", [5], [2, 3, 8], False),
    ],
}
