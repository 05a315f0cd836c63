"""Sides that differ; one that is cut off."""

OPINFO = 4
CASES = {
    "aten::reflection_pad1d": [
        ("f32[2,3,9]", [2, 1]),
        ("f32[3,9]", [-1, 1]),
    ],
}
