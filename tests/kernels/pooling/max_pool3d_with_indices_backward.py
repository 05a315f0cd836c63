"""What the forward chose."""

CASES = {
    "aten::max_pool3d_with_indices_backward": [
        ("f32[2,3,3,4,4]", "f32[2,3,5,6,7]", [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], True),
    ],
}
FORWARD = {
    "aten::max_pool3d_with_indices_backward": ("aten::max_pool3d_with_indices", {"indices": 1}, {}),
}
