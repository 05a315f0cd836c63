"""Words that repeat, padding, counts."""

CASES = {
    "aten::embedding_dense_backward": [
        ("f32[5,3]", "i64(0, 3, 3, 8, 0)", 9, -1, False),
        ("f32[5,3]", "i64(0, 3, 3, 8, 0)", 9, -1, True),
        ("bf16[4,6,130]", "i64[4,6]<9", 9, 3, False),
        ("f16[300,2]", "i32[300]<5", 5, -1, True),
        ("f32[0,3]", "i64[0]<9", 9, -1, False),
        ("bf16[6,5,5]{25,1,5}", "i64[5,6]<10", 10, -1, False),
    ],
}
FAULTS = {
    "counts nothing": ("out / tl.maximum(count, 1)", "out / tl.minimum(count, 1)"),
}
REFUSED = {
    "aten::embedding_dense_backward": [("f32[2,3]", "i64[5]<1", 4, -1, False)],
}
