"""Indices, masks, dimensions between."""

OPINFO = 4
CASES = {
    "aten::_unsafe_index.Tensor": [
        ("f32[9,5]", ["i64[4]<9"]),
        ("i64[4,5,6]", ["i64[3,1]<4", None, "i64[2]<6"]),
        ("f32[4,5]", ["i64[3]<4", "i64[3]<5"]),
    ],
}
