"""Sides that differ; one that is cut off; results of many elements."""

OPINFO = 4
CASES = {
    "aten::replication_pad1d": [
        ("f32[2,3,9]", [2, 1]),
        ("f32[3,9]", [-1, 1]),
        ("f32[2,3,9]", [9, 0]),
        ("f32[3,5,300]", [2, 1]),
        ("f32[2,2,2000]{9000,2,4}", [70, -1]),
    ],
}
