"""Dimensions; an index that does not reach as far as the tensors."""

OPINFO = 4
CASES = {
    "aten::scatter_add": [
        ("f32[33,70]", 1, "i64[33,9]<70", "f32[40,9]"),
        ("bf16[7,5,4]{1,7,35}", 0, "i64[9,3,4]{12,1,3}<7", "bf16[9,5,4]"),
        ("bool[5]", 0, "i64[9]<5", "bool[9]"),
    ],
}
