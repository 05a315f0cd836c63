"""Layouts."""

OPINFO = 4
CASES = {"aten::alias_copy": [("f32[33,70]{1,33}",), ("i16[4,0]",)]}
