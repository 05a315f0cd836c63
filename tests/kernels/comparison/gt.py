"""Broadcast, promotion, NaN; numbers that the type does not hold."""

CASES = {
    "aten::gt.Tensor": [
        ("i64[33,70]{1,33}", "i64[70]"),
        ("f32(nan, inf, 1, -0.)", "f32(nan, inf, 2, 0.)"),
        ("u8[7,5]", "f16[5]"),
    ],
    "aten::gt.Scalar": [
        ("i32[40,9]", 2),
        ("f16(0.1, nan, 1)", 0.1),
        ("bool[9]", 1),
    ],
}
