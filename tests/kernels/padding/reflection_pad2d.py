"""Sides that differ; one that is cut off."""

OPINFO = 4
CASES = {
    "aten::reflection_pad2d": [
        ("f32[2,3,7,9]", [2, 1, 0, 3]),
        ("f32[3,7,9]", [-1, 1, 0, 3]),
    ],
}
