"""Offsets and dimensions."""

OPINFO = 4
CASES = {
    "aten::diag_embed": [
        ("f32[33,20]",),
        ("f32[4,3,5]{1,4,12}", -2, 0, 2),
        ("i64[7]", 3, 1, 0),
    ],
}
