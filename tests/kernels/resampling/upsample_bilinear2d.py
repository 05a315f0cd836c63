"""Up and down; with scales."""

CASES = {
    "aten::upsample_bilinear2d": [
        ("f32[2,3,7,9]", [15, 20], True),
        ("f32[2,3,7,9]", [3, 5], False),
        ("f32[2,3,7,9]", [15, 20], False, 2.5, 2.5),
        ("f32[2,3,7,9]", [3, 5], True),
    ],
}
REFUSED = {"aten::upsample_bilinear2d": [("i64[2,3,4,4]", [8, 8], False)]}
