"""Broadcast, promotion, special values."""

CASES = {
    "aten::remainder.Tensor": [
        ("f32[33,70]", "f32[70]"),
        ("f32(1e30, -1e30, 7, -7, inf, 1, -0.)", "f32(3, 7, -2, 2, 1, 0., 1)"),
        ("bf16(3, -3, 0, 1, -1e30)", "bf16(0., -0., 0., 7, 3)"),
        ("f64(1e300, 5)", "f64(3, inf)"),
        ("f16[9]", "f16[9]"),
        ("i32[40,9]", "i32(1, 2, 3, -4, -1, 7, 8, 9, -3)"),
    ],
    "aten::remainder.Scalar": [
        ("f32[33,70]", 0.7),
        ("i64[9]", -3),
    ],
    "aten::remainder.Scalar_Tensor": [
        (5, "f32[9]"),
    ],
}
