"""Padding, windows over the edge, divisors, channels-last."""

OPINFO = 4
CASES = {
    "aten::avg_pool2d": [
        ("f32[2,3,7,9]", [3, 3], [2, 2], [1, 1], True, False, None),
        ("f32[2,15,7,9]{945,1,135,15}", [2, 2], [], 0, False, True, 7),
        ("f32[2,3,12,12]", [12, 12]),
        ("f32[2,3,2,2]", [320, 320], [320, 320], 0, True),
        ("f32[1,2,3,3]", [9, 7], [2, 3], [4, 3], True),
    ],
}
FAULTS = {"padding counts": ("a[6] == 1", "a[6] == 0")}
