"""Sums, means and maxima of bags, one of them empty; weights, padding."""

CASES = {
    "aten::_embedding_bag": [
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)"),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 1),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 2),
        ("f16[9,130]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 0, False, "f16[6]"),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 1, False, None, False, 3),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5, 6)", False, 0, False, None, True),
        ("f32[50,4]", "i64[600]<50", "i64(0, 90, 91)", False, 1, False, None, False, 7),
        ("bf16[50,40]", "i32[70]<50", "i32(0, 66)"),
        ("f32[9,300]", "i64(0, 3, 8, 5, 1, 0)", "i64(0, 4)", False, 0, False, "f32[6]"),
    ],
}
FAULTS = {
    "lanes of a bag do not meet": ("tl.sum(acc, 1), tl.sum(count, 1)", "tl.max(acc, 1), tl.sum(count, 1)"),
    "the next is the same": ("row += DEEP * ROWS", "row += DEEP"),
    "the least": ("(x > acc)", "(x < acc)"),
    "padding counts": ("tl.sum(used.to(tl.int32), 0)", "tl.sum(inside.to(tl.int32), 0)"),
}
REFUSED = {"aten::_embedding_bag": [("f32[9,5]", "i64[6]<9", "i64(0, 2)", False, 0, False, "f64[6]")]}
