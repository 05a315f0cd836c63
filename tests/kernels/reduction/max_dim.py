"""Rows, columns, long ones; equal elements, NaN."""

OPINFO = 4
CASES = {
    "aten::max.dim": [
        ("f32[3,30000]", 1),
        ("bf16[3000,33]", 0, True),
        ("i64[40,70]{1,40}", 1),
        ("f32(nan, 1, nan, inf)", 0),
        ("u8[9,300]<7", -1),
    ],
}
REFUSED = {
    "aten::max.dim": [("f32[2,0]", 1), ("f32[0]", -1)],
}
