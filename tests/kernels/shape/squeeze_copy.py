"""Dimensions of one element, and of more."""

OPINFO = 4
CASES = {
    "aten::squeeze_copy": [("f32[33,1,70]{1,1,33}",)],
    "aten::squeeze_copy.dim": [("f32[33,1,70]", 1), ("f32[33,1,70]", 0)],
    "aten::squeeze_copy.dims": [("f32[1,33,1]", [0, 1])],
}
