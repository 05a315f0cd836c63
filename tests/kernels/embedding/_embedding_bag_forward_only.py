"""Sums, means and maxima of bags, one of them empty; weights, padding."""

CASES = {
    "aten::_embedding_bag_forward_only": [
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)"),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 1),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 2),
        ("f16[9,130]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 0, False, "f16[6]"),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)", False, 1, False, None, False, 3),
        ("f32[9,5]", "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5, 6)", False, 0, False, None, True),
    ],
}
