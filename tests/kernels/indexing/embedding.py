"""Rows of a table."""

OPINFO = 4
CASES = {
    "aten::embedding": [
        ("f32[9,130]", "i64[5,3]<9"),
        ("bf16[9,7]{1,9}", "i32[6]<9"),
    ],
}
FAULTS = {
    "the next row": ("offset += index * integer_value(", "offset += (index * 0 + 1) * integer_value("),
}
