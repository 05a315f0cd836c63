"""Sizes that divide and do not, more than there are."""

CASES = {
    "aten::_adaptive_avg_pool2d_backward": [
        ("f32[2,3,3,3]", "f32[2,3,7,9]"),
        ("f32[2,3,10,10]", "f32[2,3,7,9]"),
    ],
}
