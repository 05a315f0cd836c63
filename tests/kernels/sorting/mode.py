"""Rows of more than a tile, columns; runs of equal length, NaN."""

OPINFO = 4
CASES = {
    "aten::mode": [
        ("i64[3,1200]",),
        ("i32[70,40]{1,70}", 0, True),
        ("f32(1, 3, 3, -inf, inf, inf, 0, -0.)",),
        ("bf16(nan, nan)", -1, True),
        ("bool[9,30]",),
        ("f64[3,5,4]", 1),
    ],
}
FAULTS = {"the least frequent": ('reduce("argmax"', 'reduce("argmin"')}
REFUSED = {"aten::mode": [("f32[3,0]", 1)]}
