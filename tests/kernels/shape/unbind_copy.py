"""Dimensions."""

OPINFO = 4
CASES = {"aten::unbind_copy.int": [("f32[33,7]", 1), ("i64[3,4]{1,3}",), ("f32[40,5]",)]}
