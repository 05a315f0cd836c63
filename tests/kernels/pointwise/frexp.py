"""Layouts, subnormal numbers, special values."""

CASES = {
    "aten::frexp.Tensor": [
        ("f32[33,70]{1,33}",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f32(nan, inf, 0., -0., 1e-40, 4, -3)",),
        ("f64[7,9]",),
        ("f16[40]",),
    ],
}
