"""Broadcast, promotion, bits past the end."""

CASES = {
    "aten::bitwise_left_shift.Tensor": [
        ("i64[33,70]{1,33}", "i64[70]<70"),
        ("i32[40,9]", "i32[9]<40"),
        ("u8[7,5]<200", "i16[5]"),
        ("i8[9]", "i8[9]<8"),
    ],
}
