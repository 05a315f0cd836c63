"""Of all, of rows, of columns, short ones too; equal elements, NaN."""

OPINFO = 4
CASES = {
    "aten::argmax": [
        ("f32[70000]",),
        ("f32[3,30000]", 1),
        ("bf16[3000,33]", 0, True),
        ("f32[9,33000]", 0),
        ("i64[40,70]{1,40}",),
        ("f32(nan, 1, nan, inf)", 0),
    ],
}
REFUSED = {
    "aten::argmax": [("bool[3]",)],
}
