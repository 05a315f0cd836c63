"""Dimensions; an index that does not reach as far as the tensors."""

OPINFO = 4
CASES = {
    "aten::scatter.src": [
        ("f32[9]", 0, "i64(3, 0, 8)", "f32[5]"),
        ("f32[]", 0, "i64[1]<1", "f32[1]"),
        ("f32[260,260]", 1, "i64[260,200]<260", "f32[260,230]"),
        ("bf16[300,256]", 0, "i64[280,256]<300", "bf16[280,256]"),
    ],
    "aten::scatter.value": [
        ("f32[33,70]", 1, "i64[33,9]<70", 2.5),
        ("f32[7,5,4]{1,7,35}", 0, "i64[9,3,4]{12,1,3}<7", -1),
    ],
}
REFUSED = {
    "aten::scatter.value": [("i8[4]", 0, "i64[2]<4", 300)],
}
