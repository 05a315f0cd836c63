"""Rows, columns, long ones; infinities, NaN."""

OPINFO = 4
CASES = {
    "aten::logcumsumexp": [
        ("f32[3,30000]", 1),
        ("f32[70,40]", 0),
        ("bf16[2,300,33]", 1),
        ("f64[40,70]{1,40}", 1),
        ("f32(-inf, 1, inf, 2, nan, 3)", 0),
        ("f32(-inf, -inf)", 0),
    ],
}
