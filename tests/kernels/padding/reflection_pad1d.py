"""Sides that differ; one that is cut off; results of many elements."""

OPINFO = 4
CASES = {
    "aten::reflection_pad1d": [
        ("f32[2,3,9]", [2, 1]),
        ("f32[3,9]", [-1, 1]),
        ("f32[3,5,300]", [2, 1]),
        ("f32[2,2,4000]{9000,4500,1}", [9, 3999]),
    ],
}
