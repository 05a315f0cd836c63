"""Of all, of rows, of columns; long ones."""

OPINFO = 4
CASES = {
    "aten::mean": [
        ("f32[70000]",),
        ("bf16[33,70]{1,33}",),
        ("c64[5000]",),
    ],
    "aten::mean.dim": [
        ("f32[33,3000]", [1]),
        ("f32[3000,33]", [0], True),
        ("f16[4,5,6]", [0, 2]),
        ("c64[33,70]{1,33}", [-1], True),
    ],
}
