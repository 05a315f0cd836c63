"""Up and down; with scales; aligned; channels last."""

CASES = {
    "aten::_upsample_bicubic2d_aa": [
        ("f32[2,3,7,9]", [15, 20], True),
        ("f32[2,3,27,19]", [3, 5], False),
        ("f32[2,3,7,9]", [15, 20], False, 2.5, 2.5),
        ("f32[2,3,17,9]{459,1,27,3}", [3, 11], True),
        ("f64[1,2,20,9]", [7, 1], False, 0.37, None),
        ("f32[1,1,5,5]", [5, 5], False),
    ],
}
FAULTS = {
    "no antialiasing": ("width = max(step, 1.0)", "width = 1.0"),
    "weights that add up to something else": ("height / total, mask", "height, mask"),
    "the other cubic": ("(-0.5 * x + 2.5) * x - 4.0) * x + 2.0", "(-0.75 * x + 3.75) * x - 6.0) * x + 3.0"),
}
