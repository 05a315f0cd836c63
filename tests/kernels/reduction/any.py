"""Of all, of rows, of columns, of several dimensions, of none."""

OPINFO = 4
CASES = {
    "aten::any": [("bool[70000]",), ("f32(nan, 0, -0.)",), ("u8[33,70]<2",), ("f32[0]",)],
    "aten::any.dim": [("bool[33,3000]", 1), ("i64[3000,33]<2", 0, True)],
    "aten::any.dims": [("bool[4,5,6]", [0, 2]), ("f32[4,5]{1,4}", None), ("u8[4,5]<3", []), ("bf16[4,5]", [], True)],
}
