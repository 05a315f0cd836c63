"""Dimensions."""

OPINFO = 4
CASES = {"aten::unsqueeze_copy": [("f32[33,70]{1,33}", -2)]}
