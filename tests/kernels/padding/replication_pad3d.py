"""Sides that differ; one that is cut off; results of many elements."""

OPINFO = 4
CASES = {
    "aten::replication_pad3d": [
        ("f32[2,3,5,6,7]", [2, 1, 0, 3, 1, 2]),
        ("f32[3,5,6,7]", [-1, 1, 0, 3, 1, 2]),
        ("f32[2,3,5,6,7]", [9, 0, 4, 7, 1, 2]),
        ("f32[2,3,9,8,9]", [2, 1, 0, 3, 1, 2]),
    ],
}
