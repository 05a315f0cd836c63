"""Sides that differ."""

CASES = {
    "aten::replication_pad3d_backward": [
        ("f32[2,3,8,9,10]", "f32[2,3,5,6,7]", [2, 1, 0, 3, 1, 2]),
    ],
}
