"""Windows that overlap, and that do not."""

CASES = {
    "aten::unfold_backward": [
        ("f32[33,33,5]", [33, 70], 1, 5, 2),
        ("i64[3,4,2]", [9, 4], 0, 2, 3),
        ("bf16[4,3,2]{1,4,12}", [5, 3], 0, 2, 1),
        ("f32[1]", [], 0, 1, 1),
    ],
}
FAULTS = {"one window less": ("range(tl.cdiv(size, step))", "range(tl.cdiv(size, step) - 1)")}
