"""Sizes that divide and do not, more than there are."""

CASES = {
    "aten::_adaptive_avg_pool3d": [
        ("f32[2,3,5,6,7]", [3, 3, 3]),
        ("f32[2,3,5,6,7]{630,1,126,21,3}", [8, 8, 8]),
        ("f32[3,12,12,12]", [1, 1, 1]),
    ],
}
