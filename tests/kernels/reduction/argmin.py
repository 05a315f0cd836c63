"""Of all, of rows, of columns; equal elements, NaN."""

OPINFO = 4
CASES = {
    "aten::argmin": [
        ("f32[70000]",),
        ("f32[3,30000]", 1),
        ("bf16[3000,33]", 0, True),
        ("i64[40,70]{1,40}",),
        ("f32(nan, 1, nan, inf)", 0),
    ],
}
REFUSED = {
    "aten::argmin": [("bool[3]",)],
}
