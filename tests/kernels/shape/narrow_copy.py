"""Rows and columns."""

OPINFO = 4
CASES = {"aten::narrow_copy": [("f32[33,70]", 1, 3, 60), ("i64[5,4]{1,5}", 0, -4, 2)]}
