"""What the forward chose."""

CASES = {
    "aten::max_pool2d_with_indices_backward": [
        ("f32[2,3,4,5]", "f32[2,3,7,9]", [3, 3], [2, 2], [1, 1], [1, 1], True),
    ],
}
FORWARD = {
    "aten::max_pool2d_with_indices_backward": ("aten::max_pool2d_with_indices", {"indices": 1}, {}),
}
