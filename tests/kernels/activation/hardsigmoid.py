"""Layouts and special values."""

CASES = {
    "aten::hardsigmoid": [
        ("f32[33,70]{1,33}",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f32(nan, inf, -inf, -0., 0.5, -1.5, 30, -30, 100)",),
        ("f64[7,9]",),
        ("f16[40]",),
    ],
}
