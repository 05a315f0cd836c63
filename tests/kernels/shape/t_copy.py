"""Matrices."""

OPINFO = 4
CASES = {"aten::t_copy": [("f32[33,70]",), ("i8[5]",)]}
