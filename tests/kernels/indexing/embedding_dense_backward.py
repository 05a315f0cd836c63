"""Words that repeat, padding, counts; few words and many tokens, of which some are infinite."""

CASES = {
    "aten::embedding_dense_backward": [
        ("f32[5,3]", "i64(0, 3, 3, 8, 0)", 9, -1, False),
        ("f32[5,3]", "i64(0, 3, 3, 8, 0)", 9, -1, True),
        ("bf16[4,6,130]", "i64[4,6]<9", 9, 3, False),
        ("f16[300,2]", "i32[300]<5", 5, -1, True),
        ("f32[0,3]", "i64[0]<9", 9, -1, False),
        ("bf16[8200,20]", "i64[8200]<71", 71, 5, False),
        ("f32[41,200,6]", "i64[41,200]{1,41}<200", 200, -1, False),
        ("f32[8200,20]", "i64[8200]<71", 71, 5, False),
        ("f16[8192,3]=inf", "i32[8192]<9", 71, -1, False),
        ("bf16[6,5,5]{25,1,5}", "i64[5,6]<10", 10, -1, False),
    ],
}
FAULTS = {
    "an infinity is in every row": ("acc = tl.zeros([WORDS, BLOCK_N], tl.float32)\n        for at", "for at"),
    "one of three": ("range(3)", "range(1)"),
    "padding counts": ("(index >= words) | (index == padding_idx)", "(index >= words)"),
    "counts nothing": ("out / tl.maximum(count, 1)", "out / tl.minimum(count, 1)"),
}
REFUSED = {
    "aten::embedding_dense_backward": [("f32[2,3]", "i64[5]<1", 4, -1, False), ("f32[6,3]", "f32[6]u", 4, -1, False)],
}
