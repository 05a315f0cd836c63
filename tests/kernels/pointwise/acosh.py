"""Layouts and special values."""

CASES = {
    "aten::acosh": [
        ("f32(1, 1.0001, 1.5, 2, 10, 1e20, inf, nan, 0.5)",),
        ("bf16(1, 2, 3)",),
        ("f64(1, 1.0001, 1e200)",),
        ("i32(1, 2, 3)",),
    ],
}
