"""Layouts, halves, signs of zeros, special values."""

CASES = {
    "aten::trunc": [
        ("f32[33,70]{1,33}",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f32(nan, inf, -inf, -0., 0.5, -0.5, 1.5, 2.5, -2.5, 8388609, 1e30)",),
        ("f64[7,9]",),
        ("i32[40,9]",),
    ],
}
