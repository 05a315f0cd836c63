"""Sizes."""

OPINFO = 4
CASES = {"aten::expand_copy": [("f32[33,1]", [4, -1, 70])]}
