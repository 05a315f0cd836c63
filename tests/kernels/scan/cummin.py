"""Rows, columns, long ones; equal elements, NaN."""

OPINFO = 4
CASES = {
    "aten::cummin": [
        ("f32[3,30000]", 1),
        ("f32[70,40]", 0),
        ("bf16[2,300,33]", 1),
        ("i64[40,70]{1,40}", 1),
        ("bool[9,300]", -1),
        ("f32(1, nan, 3, nan, inf, -inf)", 0),
        ("f32(-inf, -inf, inf, inf)", 0),
    ],
}
