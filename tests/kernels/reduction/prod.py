"""Of all, of rows, of columns."""

OPINFO = 4
CASES = {
    "aten::prod": [("f32[40]",), ("i32[33,70]",), ("f64[0]",), ("bf16[9]", {"dtype": "torch.float32"})],
    "aten::prod.dim_int": [("f32[33,30]", 1), ("bf16[30,33]", 0, True), ("bool[40,9]", 1), ("f32[2,40000]=1.00001", 1)],
}
