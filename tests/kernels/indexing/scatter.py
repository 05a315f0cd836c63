"""Dimensions; an index that does not reach as far as the tensors."""

OPINFO = 4
CASES = {
    "aten::scatter.src": [
        ("f32[9]", 0, "i64(3, 0, 8)", "f32[5]"),
        ("f32[]", 0, "i64[1]<1", "f32[1]"),
    ],
    "aten::scatter.value": [
        ("f32[33,70]", 1, "i64[33,9]<70", 2.5),
        ("f32[7,5,4]{1,7,35}", 0, "i64[9,3,4]{12,1,3}<7", -1),
    ],
}
