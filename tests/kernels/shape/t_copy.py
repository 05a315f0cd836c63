"""Matrices, of many tiles too."""

OPINFO = 4
CASES = {"aten::t_copy": [("f32[33,70]",), ("i8[5]",), ("bf16[129,66]",), ("f64[96,64]",)]}
