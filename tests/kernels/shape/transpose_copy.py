"""Dimensions."""

OPINFO = 4
CASES = {"aten::transpose_copy.int": [("f32[3,33,70]", 0, -1)]}
