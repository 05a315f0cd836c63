"""Slices with steps."""

OPINFO = 4
CASES = {
    "aten::slice_backward": [
        ("f32[33,20]", [33, 70], 1, 3, 63, 3),
        ("f32[4,70]{1,4}", [33, 70], 0, -4, 9223372036854775807, 1),
        ("bf16[2,3,5]", [2, 9, 5], 1, 1, 4, 1),
        ("i64[0,3]", [5, 3], 0, 2, 2, 1),
    ],
}
FAULTS = {
    "no steps": ("i = i // step", "i = i * step"),
}
REFUSED = {"aten::slice_backward": [("f32[4,3]", [5, 3], 0, 0, 3, 1)]}
