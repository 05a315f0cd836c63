"""Sides that differ."""

CASES = {
    "aten::reflection_pad2d_backward": [
        ("f32[2,3,10,12]", "f32[2,3,7,9]", [2, 1, 0, 3]),
    ],
}
