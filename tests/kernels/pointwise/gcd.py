"""Broadcast, promotion, special values."""

CASES = {
    "aten::gcd": [
        ("i64[33,70]{1,33}<1000", "i64[70]<1000"),
        ("i32[40,9]", "i32[9]"),
        ("u8[7,5]<200", "i16[5]"),
    ],
}
