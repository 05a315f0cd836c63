"""Broadcast, promotion, special values."""

CASES = {
    "aten::rsub.Tensor": [
        ("f32[33,70]", "f32[70]"),
        ("f32(nan, inf, -inf, -0., 0., 2, 3, -7)", "f32(1, 2, inf, -1, 0., nan, -2, 2.5)"),
        ("bf16[40,30]{1,40}", "bf16[40,30]"),
        ("i32[40,9]", "i32[9]", {"alpha": 2}),
    ],
    "aten::rsub.Scalar": [
        ("f32[33,70]", 0.7, 2),
        ("i64[9]", -3),
    ],
}
REFUSED = {
    "aten::rsub.Tensor": [("i8[3]", "i8[3]", {"alpha": 300})],
}
