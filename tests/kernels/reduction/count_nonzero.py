"""Of all, of rows, of columns."""

OPINFO = 4
CASES = {
    "aten::count_nonzero": [("f32[70000]",), ("i8[33,70]", 1), ("f32(nan, 0, -0., 0.25)",)],
    "aten::count_nonzero.dim_IntList": [("bool[33,3000]", [1]), ("bf16[3000,33]", [0]), ("u8[4,5,6]<2", [0, 2])],
}
