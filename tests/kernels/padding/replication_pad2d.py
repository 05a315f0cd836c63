"""Sides that differ; one that is cut off; results of many elements, and channels that lie last."""

OPINFO = 4
CASES = {
    "aten::replication_pad2d": [
        ("f32[2,3,7,9]", [2, 1, 0, 3]),
        ("f32[3,7,9]", [-1, 1, 0, 3]),
        ("f32[2,3,7,9]", [9, 0, 4, 7]),
        ("f32[2,3,28,27]", [2, 1, 0, 3]),
        ("f32[2,13,15,14]{2730,1,182,13}", [2, 1, 0, 3]),
    ],
}
