"""Broadcast, promotion, special values."""

CASES = {
    "aten::ldexp.Tensor": [
        ("f32[33,70]", "i32[70]"),
        ("i64[9]", "i64[9]"),
        ("f64[9]", "i64[9]"),
        ("bf16[9]", "i64[9]"),
    ],
}
