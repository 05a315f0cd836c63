"""Up and down; with scales."""

CASES = {
    "aten::upsample_trilinear3d": [
        ("f32[2,3,5,6,7]", [11, 9, 15], True),
        ("f32[2,3,5,6,7]", [2, 4, 3], False),
        ("f32[2,3,5,6,7]", [11, 9, 15], False, 2.5, 2.5, 2.5),
        ("f32[2,3,5,6,7]", [2, 4, 3], True),
    ],
}
