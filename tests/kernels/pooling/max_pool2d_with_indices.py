"""Dilation, padding, windows of many elements, channels-last, NaN."""

OPINFO = 4
CASES = {
    "aten::max_pool2d_with_indices": [
        ("f32[2,3,7,9]", [2, 2], [2, 2], [1, 1], [2, 2], True),
        ("f32[2,15,7,9]{945,1,135,15}", [3, 3], [2, 2], [1, 1]),
        ("i64[3,5,5]", [2, 2], [1, 1]),
        ("f32[2,2,6,9]", [3, 6], [2, 2], [1, 3]),
        ("f32[1,2,3,4]", [9, 5], [2, 8], [4, 2], [1, 3], True),
    ],
}
FAULTS = {
    "no dilation": ("+ t * a[2]", "+ t"),
    "large windows from the first tap on": ("tl.maximum(a[1] - o * a[0], 0)", "0 * o"),
}
