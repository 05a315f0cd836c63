"""Broadcast, promotion, up to the last bit."""

CASES = {
    "aten::bitwise_left_shift.Tensor": [
        ("i64[33,70]{1,33}", "i64[70]<64"),
        ("i32[40,9]", "i32[9]<32"),
        ("u8[7,5]<200", "i16[5]<16"),
        ("i8[9]", "i8[9]<8"),
    ],
}
