"""Sides that differ; one that is cut off."""

OPINFO = 4
CASES = {
    "aten::replication_pad2d": [
        ("f32[2,3,7,9]", [2, 1, 0, 3]),
        ("f32[3,7,9]", [-1, 1, 0, 3]),
        ("f32[2,3,7,9]", [9, 0, 4, 7]),
    ],
}
