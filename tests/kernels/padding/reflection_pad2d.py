"""Sides that differ; one that is cut off; results of many elements, and channels that lie last."""

OPINFO = 4
CASES = {
    "aten::reflection_pad2d": [
        ("f32[2,3,7,9]", [2, 1, 0, 3]),
        ("f32[3,7,9]", [-1, 1, 0, 3]),
        ("f32[2,3,28,27]", [2, 1, 0, 3]),
        ("f32[2,12,15,14]{2520,1,168,12}", [2, 1, 0, 3]),
    ],
}
