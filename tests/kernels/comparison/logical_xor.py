"""Broadcast, promotion, NaN."""

CASES = {
    "aten::logical_xor": [
        ("i64[33,70]{1,33}", "i64[70]"),
        ("f32(nan, 0., 1, -0.)", "f32(nan, inf, 2, 0.)"),
        ("bool[7,5]", "f16[5]"),
    ],
}
