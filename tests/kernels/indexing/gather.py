"""Dimensions; an index that does not reach as far as the tensor."""

OPINFO = 4
CASES = {
    "aten::gather": [
        ("f32[33,70]", 1, "i64[33,9]<70"),
        ("f32[7,5,4]{1,7,35}", 0, "i64[9,3,4]{12,1,3}<7"),
        ("bf16[]", 0, "i64[3]<1"),
    ],
}
FAULTS = {"the first": ("offset += index * integer_value(", "offset += (index * 0) * integer_value(")}
