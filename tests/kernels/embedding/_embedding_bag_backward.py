"""What the forward tells of the bags, of which one is empty."""

indices, offsets = "i64(0, 3, 3, 5, 1, 0)", "i64(0, 2, 2, 5)"
CASES = {
    "aten::_embedding_bag_backward": [
        ("f32[4,5]", indices, offsets, 9, False, 0, False, None),
        ("f32[4,5]", indices, offsets, 9, False, 1, False, None),
        ("f32[4,5]", indices, offsets, 9, False, 2, False, None),
        ("f32[4,5]", indices, offsets, 9, False, 0, False, "f32[6]"),
        ("f32[4,5]", indices, offsets, 9, False, 1, False, None, 3),
    ]
}
FORWARD = {
    "aten::_embedding_bag_backward": (
        "aten::_embedding_bag",
        {"offset2bag": 1, "bag_size": 2, "maximum_indices": 3},
        {"weight": "f32[9,5]"},
    )
}
REFUSED = {
    "aten::_embedding_bag_backward": [
        ("f32[2,3]", "i64[6]<1", "i64[2]<1", "i64[3]<1", "i64[2]<1", "i64[2,3]<1", 4, False, 0, False, None),
        ("f32[2,3]", "i64[6]{0}<1", "i64[2]<1", "i64[6]<1", "i64[2]<1", "i64[2]<1", 4, False, 0, False, None),
        ("f64[2,3]", "i64[6]<1", "i64[2]<1", "i64[6]<1", "i64[2]<1", "i64[2]<1", 4, False, 0, False, "f32[6]"),
        ("f32[2,3]", "i64[6]<1", "i64[2]<1", "i64[6]<1", "i64[2]<1", "i64[2]<1", 4, False, 1, False, "f32[6]"),
        ("f32[2,3]", "i64[6]<1", "i64[2]<1", "i64[6]<1", "i64[2]<1", "i64[2]<1", 4, False, -1, False, None),
    ],
}
