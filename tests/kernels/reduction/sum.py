"""Of all, of rows, of columns, short ones too; long ones."""

OPINFO = 4
CASES = {
    "aten::sum": [
        ("f32[70000]",),
        ("i32[33,70]",),
        ("c64[]",),
        ("c64(0j, 1j)", {"dtype": "torch.bool"}),
    ],
    "aten::sum.dim_IntList": [
        ("f32[33,3000]", [1]),
        ("f32[3000,33]", [0], True),
        ("bf16[5,33000]", [0], True),
        ("bf16[4,5,6]", [0, 2]),
        ("bool[40,9]", [1]),
        ("f32[0,5]", [0]),
        ("c64[33,700]{1,33}", [-1], True),
        ("c64[4,0,6]", [0, 1]),
    ],
}
FAULTS = {
    "the last step alone": ("c = (a[0] + b[0],)", "c = (b[0],)"),
}
