"""Padding, windows over the edge, divisors."""

CASES = {
    "aten::avg_pool2d_backward": [
        ("f32[2,3,4,5]", "f32[2,3,7,9]", [3, 3], [2, 2], [1, 1], True, False, None),
        ("f32[2,3,4,5]", "f32[2,3,7,9]", [3, 3], [2, 2], [1, 1], True, True, 5),
    ],
}
