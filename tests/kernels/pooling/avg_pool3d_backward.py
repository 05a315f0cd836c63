"""Padding, windows over the edge, divisors."""

CASES = {
    "aten::avg_pool3d_backward": [
        ("f32[2,3,3,4,4]", "f32[2,3,5,6,7]", [3, 3, 3], [2, 2, 2], [1, 1, 1], True, False, None),
        ("f32[2,3,3,4,4]", "f32[2,3,5,6,7]", [3, 3, 3], [2, 2, 2], [1, 1, 1], True, True, 5),
    ],
}
