"""Broadcast, promotion, special and denormal values."""

CASES = {
    "aten::ldexp.Tensor": [
        ("f32[33,70]", "i32[70]"),
        ("i64[9]", "i64[9]"),
        ("f32(3, 1e30, -5)", "i32(-140, -140, -128)"),
        ("f64[9]", "i64[9]"),
        ("bf16[9]", "i64[9]"),
    ],
}
