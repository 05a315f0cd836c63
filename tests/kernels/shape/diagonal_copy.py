"""Offsets."""

OPINFO = 4
CASES = {"aten::diagonal_copy": [("f32[33,70]", 3), ("f32[5,3,70]", -1, 2, 1)]}
