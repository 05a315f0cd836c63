"""Padding, windows over the edge, divisors, channels-last."""

OPINFO = 4
CASES = {
    "aten::avg_pool3d": [
        ("f32[2,3,5,6,7]", [3, 3, 3], [2, 2, 2], [1, 1, 1], True, False, None),
        ("f32[2,3,5,6,7]{630,1,126,21,3}", [2, 2, 2], [], 0, False, True, 7),
        ("f32[2,3,12,12,12]", [12, 12, 12]),
    ],
}
FAULTS = {"padding counts": ("a[6] == 1", "a[6] == 0")}
