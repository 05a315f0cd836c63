"""Padding, windows over the edge, divisors, channels-last; planes whose windows are small, or one; an odd row left."""

OPINFO = 4
CASES = {
    "aten::avg_pool2d": [
        ("f32[2,3,7,9]", [3, 3], [2, 2], [1, 1], True, False, None),
        ("f32[2,3,8,10]", [3, 3], [2, 2], [1, 1]),
        ("bf16[3,8,10]", [2, 2]),
        ("f64[2,3,5,7]", [3, 2], [1, 1], [1, 1], False, False),
        ("i64[2,3,6,6]", [3, 2], [1, 2], [1, 0], False, True, -3),
        ("f32[2,15,7,9]{945,1,135,15}", [2, 2], [], 0, False, True, 7),
        ("f32[2,15,7,9]{945,1,135,15}", [3, 2], [2, 1], [1, 1], False, False),
        ("f32[2,3,12,12]", [12, 12]),
        ("f16[3,33,40]", [33, 40], [1, 1], 0, False, True, 9),
        ("f32[2,3,2,2]", [320, 320], [320, 320], 0, True),
        ("f32[1,2,3,3]", [9, 7], [2, 3], [4, 3], True),
    ],
}
FAULTS = {
    "padding counts": ("a[6] == 1", "a[6] == 0"),
    "padding counts on planes": ("start if PADDED else tl.maximum(start, 0)", "start"),
    "a row too many": ("inside & (row + 1 < OH)", "inside & (row < OH)"),
    "one below too high": ("upper += part", "upper += part * 2"),
    "a plane short": ("inside[:, None] & (i < size)", "inside[:, None] & (i < size - 1)"),
}
