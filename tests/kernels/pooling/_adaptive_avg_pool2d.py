"""Sizes that divide and do not, more than there are."""

CASES = {
    "aten::_adaptive_avg_pool2d": [
        ("f32[2,3,7,9]", [3, 3]),
        ("f32[2,15,7,9]{945,1,135,15}", [8, 8]),
        ("f32[3,12,12]", [1, 1]),
    ],
}
