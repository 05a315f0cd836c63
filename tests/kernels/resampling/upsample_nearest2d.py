"""Up and down; with scales; results of many elements, and channels that lie last."""

CASES = {
    "aten::upsample_nearest2d": [
        ("f32[2,3,7,9]", [15, 20]),
        ("f32[2,3,7,9]", [3, 5]),
        ("f32[2,3,7,9]", [15, 20], 2.5, 2.5),
        ("f32[2,3,7,9]", [14, 18]),
        ("f32[2,3,14,15]", [28, 31]),
        ("f32[2,12,7,9]{756,1,108,12}", [14, 18]),
    ],
}
REFUSED = {"aten::upsample_nearest2d": [("i64[2,3,4,4]", [8, 8])]}
