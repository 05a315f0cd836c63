"""Up and down; with scales; aligned; channels last."""

CASES = {
    "aten::_upsample_bicubic2d_aa_backward": [
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9], True),
        ("f32[2,3,3,5]", [3, 5], [2, 3, 27, 19], False),
        ("f32[2,3,15,20]", [15, 20], [2, 3, 7, 9], False, 2.5, 2.5),
        ("f32[2,3,3,11]{99,1,33,3}", [3, 11], [2, 3, 17, 9], True),
        ("f64[1,2,7,1]", [7, 1], [1, 2, 20, 9], False, 0.37, None),
    ],
}
FAULTS = {
    "no antialiasing": ("width = max(step, 1.0)", "width = 1.0"),
    "a result too few": ("for t in range(0, most):", "for t in range(1, most):"),
}
