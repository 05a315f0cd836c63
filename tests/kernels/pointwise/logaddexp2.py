"""Broadcast, promotion, special values."""

CASES = {
    "aten::logaddexp2": [
        ("f32[33,70]", "f32[70]"),
        ("f32(nan, inf, -inf, -0., 0., 2, 3, -7)", "f32(1, 2, inf, -1, 0., nan, -2, 2.5)"),
        ("bf16[40,30]{1,40}", "bf16[40,30]"),
        ("f64[7,5]", "f64[5]"),
    ],
}
