"""Rows of a tile and of several, few elements of them and many; NaN."""

OPINFO = 4
CASES = {
    "aten::topk": [
        ("f32[2,1300]", 5),
        ("f32[2,700]", 350, 1, False),
        ("i64[70,40]{1,70}", 7, 0),
        ("f32(1, nan, 3, -0., 0, nan, inf, -inf)", 4),
        ("bf16[3,600,5]", 100, 1),
        ("f64[]", 0),
        ("u8[2,5000]", 40, 1, True),
        ("f16[2600]", 600),
    ],
}
FAULTS = {
    "the least": ("outs, largest)", "outs, not largest)"),
    "no bound that is reached": ("reduced < candidate", "reduced <= candidate"),
}
