"""Indices, masks, dimensions between and around."""

CASES = {
    "aten::index.Tensor": [
        ("f32[9,5]", ["i64[4]<9"]),
        ("f32[9,5]", [None, "i64[4]<5"]),
        ("i64[4,5,6]", ["i64[3,1]<4", None, "i64[2]<6"]),
        ("f32[6,5]", ["bool[6]"]),
        ("bf16[9,5]{1,9}", ["i64(-1, 0, -9)"]),
        ("f32[4,5]", ["bool[4,5]"]),
    ],
}
FAULTS = {
    "negative indices": ("tl.where(index < 0, index + size, index)", "index"),
}
REFUSED = {
    "aten::index.Tensor": [("f32[4,3]", ["bool[6]=1"])],
}
