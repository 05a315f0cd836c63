"""Broadcast, promotion, NaN; numbers that the type does not hold."""

CASES = {
    "aten::eq.Tensor": [
        ("i64[33,70]{1,33}", "i64[70]"),
        ("f32(nan, inf, 1, -0.)", "f32(nan, inf, 2, 0.)"),
        ("u8[7,5]", "f16[5]"),
        ("c64(nan, inf, 1, -0.)", "f32(nan, inf, 2, 0.)"),
        ("c64[33,2]{1,33}", "c64[2]"),
    ],
    "aten::eq.Scalar": [
        ("i32[40,9]", 2),
        ("f16(0.1, nan, 1)", 0.1),
        ("bool[9]", 1),
        ("c64(1, 2, nan)", 2 + 0j),
    ],
}
