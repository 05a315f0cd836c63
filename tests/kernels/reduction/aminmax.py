"""Of all, of rows, of columns; NaN."""

OPINFO = 4
CASES = {
    "aten::aminmax": [
        ("f32[70000]",),
        ("f32[3,30000]", {"dim": 1}),
        ("bf16[3000,33]", {"dim": 0, "keepdim": True}),
        ("f32(nan, 1)", {"dim": 0}),
        ("bool[4,5]", {"keepdim": True}),
    ],
}
