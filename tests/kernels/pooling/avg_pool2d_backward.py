"""Padding, windows over the edge, divisors; planes whose windows are small, or one; windows apart, and many on one."""

CASES = {
    "aten::avg_pool2d_backward": [
        ("f32[2,3,4,5]", "f32[2,3,7,9]", [3, 3], [2, 2], [1, 1], True, False, None),
        ("f32[2,3,4,5]", "f32[2,3,7,9]", [3, 3], [2, 2], [1, 1], True, True, 5),
        ("bf16[3,4,5]", "bf16[3,8,10]", [3, 3], [2, 2], [1, 1], False, True, None),
        ("f64[2,3,2,3]", "f64[2,3,8,9]", [2, 3], [5, 4], [0, 1], False, True, None),
        ("f32[2,3,1,1]", "f32[2,3,6,5]", [6, 5], [1, 1], 0, False, True, None),
        ("f32[2,3,5,5]", "f32[2,3,12,12]", [8, 8], [1, 1], 0, False, True, None),
        ("f32[2,3,3,4]{36,1,12,3}", "f32[2,3,7,9]{189,1,27,3}", [2, 2], [2, 2], 0, False, False, None),
        ("i64[2,2,3,3]", "i64[2,2,6,6]", [2, 2], [2, 2], 0, False, True, -2),
    ],
}
FAULTS = {
    "padding counts": ("start if PADDED else tl.maximum(start, 0)", "start"),
    "a row short": ("if down_by >= 0 and", "if down_by >= 1 and"),
    "of another plane": ("magic_quotient(i, plane)", "magic_quotient(i, plane) * 0"),
}
