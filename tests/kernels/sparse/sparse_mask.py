"""Elements at the mask's places."""

CASES = {
    "aten::sparse_mask": [
        ("f32[9,3]", {"indices": "i64[1,6]<9", "values": "f32[6,3]", "size": [9, 3]}),
        ("bf16[4,4,2]{2,8,1}", {"indices": "i64[2,5]<4", "values": "bf16[5,2]", "size": [4, 4, 2]}),
    ],
}
