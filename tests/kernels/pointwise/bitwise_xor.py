"""Broadcast, promotion, bools."""

CASES = {
    "aten::bitwise_xor.Tensor": [
        ("i64[33,70]{1,33}", "i64[70]"),
        ("bool[40,9]", "bool[9]"),
        ("u8[7,5]", "i16[5]"),
    ],
}
