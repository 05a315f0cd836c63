"""Sides that differ."""

CASES = {
    "aten::reflection_pad1d_backward": [
        ("f32[2,3,12]", "f32[2,3,9]", [2, 1]),
    ],
}
