"""Dilation, padding, windows of many elements, channels-last, NaN; planes whose windows are small, or one."""

OPINFO = 4
CASES = {
    "aten::max_pool2d_with_indices": [
        ("f32[2,3,7,9]", [2, 2], [2, 2], [1, 1], [2, 2], True),
        ("f32[2,15,7,9]{945,1,135,15}", [3, 3], [2, 2], [1, 1], [2, 1]),
        ("i64[3,5,5]", [2, 2], [1, 1]),
        ("i8[2,3,8,10]", [3, 3], [2, 2], [1, 1]),
        ("f32[2,2,6,9]", [3, 6], [2, 2], [1, 3]),
        ("f32[1,2,3,4]", [9, 5], [2, 8], [4, 2], [1, 3], True),
        ("bf16[2,3,12,12]", [12, 12]),
        ("f32[3,33,40]", [33, 40]),
    ],
}
FAULTS = {
    "no dilation": ("+ t * a[2]", "+ t"),
    "no dilation on planes": ("x_ptr + c * DW", "x_ptr + c"),
    "large windows from the first tap on": ("tl.maximum(a[1] - o * a[0], 0)", "0 * o"),
    "the last of equals": ("(x > best) | (x != x)", "(x >= best) | (x != x)"),
    "of a plane the next": ("tl.where(i < size, i, 0x7FFFFFFF)", "tl.where(i < size, i + 1, 0x7FFFFFFF)"),
}
