"""Of all, of rows, of columns; corrections; a large mean."""

OPINFO = 4
CASES = {
    "aten::var.correction": [
        ("f32[70000]",),
        ("f32[33,3000]", [1]),
        ("bf16[3000,33]", [0], {"correction": 0, "keepdim": True}),
        ("f64[4,5,6]", [0, 2], {"correction": 1.5}),
        ("f32[132,2100]", [1]),
        ("bf16[44,3,2100]", [0, 2], {"correction": 0}),
        ("f32(10000001, 10000003, 10000005)",),
        ("f32[3]", {"correction": 5}),
        ("f32[0,2]", [0]),
    ],
}
