"""Dilation, padding, channels-last, NaN."""

OPINFO = 4
CASES = {
    "aten::max_pool3d_with_indices": [
        ("f32[2,3,5,6,7]", [2, 2, 2], [2, 2, 2], [1, 1, 1], [2, 2, 2], True),
        ("f32[2,3,5,6,7]{630,1,126,21,3}", [3, 3, 3], [2, 2, 2], [1, 1, 1]),
        ("i64[3,5,5,5]", [2, 2, 2], [1, 1, 1]),
    ],
}
FAULTS = {"no dilation": ("+ t * a[2]", "+ t")}
