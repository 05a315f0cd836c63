"""Broadcast, promotion, special values."""

CASES = {
    "aten::div.Tensor_mode": [
        ("f32[33,70]", "f32[70]", {"rounding_mode": "floor"}),
        ("f32(nan, inf, 1, -1, 7, -7, 0., -0.)", "f32(1, 2, 0., 0., 2, 2, 3, 3)", {"rounding_mode": "floor"}),
        ("f32(nan, inf, 1, -1, 7, -7, 0., -0.)", "f32(1, 2, 0., 0., 2, 2, 3, 3)", {"rounding_mode": "trunc"}),
        ("bf16[40,30]{1,40}", "bf16[40,30]", {"rounding_mode": "trunc"}),
        ("i32[40,9]", "i32(1, 2, 3, -4, -1, 7, 8, 9, -3)", {"rounding_mode": "trunc"}),
        ("i32[40,9]", "i32(1, 2, 3, -4, -1, 7, 8, 9, -3)", {"rounding_mode": None}),
    ],
    "aten::div.Scalar_mode": [
        ("f32[33,70]", 0.7, {"rounding_mode": "trunc"}),
        ("i64[9]", -3, {"rounding_mode": "floor"}),
        ("i64[9]", -3, {"rounding_mode": None}),
    ],
}
