"""Up and down; with scales; results of many elements."""

CASES = {
    "aten::upsample_nearest1d": [
        ("f32[2,3,9]", [23]),
        ("f32[2,3,9]", [4]),
        ("f32[2,3,9]", [23], 2.5),
        ("f32[2,3,9]", [18]),
        ("f32[3,5,150]", [300]),
        ("f32[3,5,250]", [601]),
    ],
}
REFUSED = {"aten::upsample_nearest1d": [("i64[2,3,4]", [8])]}
