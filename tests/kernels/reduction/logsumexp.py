"""Rows, columns, long ones; infinities and NaN."""

OPINFO = 4
CASES = {
    "aten::logsumexp": [
        ("f32[2,30000]", [1]),
        ("bf16[3000,33]", [0], True),
        ("i32[4,5,6]", [0, 2]),
        ("f32(inf, 1, -inf)", [0]),
        ("f32(-inf, -inf)", [0]),
        ("f32(nan, inf)", [0]),
    ],
}
