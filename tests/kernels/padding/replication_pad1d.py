"""Sides that differ; one that is cut off."""

OPINFO = 4
CASES = {
    "aten::replication_pad1d": [
        ("f32[2,3,9]", [2, 1]),
        ("f32[3,9]", [-1, 1]),
        ("f32[2,3,9]", [9, 0]),
    ],
}
