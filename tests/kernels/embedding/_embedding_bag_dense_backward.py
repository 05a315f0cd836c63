"""What the forward tells of the bags, of which one is empty."""

indices, bags, sizes, none = "i64(0, 3, 3, 5, 1, 0)", "i64(0, 0, 2, 2, 2, 3)", "i64(2, 0, 3, 1)", "i64[0]"
CASES = {
    "aten::_embedding_bag_dense_backward": [
        ("f32[4,5]", indices, bags, sizes, none, 9, False, 0, None),
        ("f32[4,5]", indices, bags, sizes, none, 9, False, 1, None),
        ("bf16[4,5]", indices, bags, sizes, none, 9, False, 0, "bf16[6]"),
        ("f32[4,5]", indices, bags, sizes, none, 9, False, 0, None, 3),
    ]
}
REFUSED = {
    "aten::_embedding_bag_dense_backward": [
        ("f32[2,3]", "i64[6]<1", "i64[6]<1", "i64[2]<1", "i64[2,3]<1", 4, False, 0, "f32[2]")
    ],
}
