"""Layouts and special and denormal values."""

CASES = {
    "aten::sinc": [
        ("f32[33,70]{1,33}",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f32(nan, inf, -inf, -0., 0.5, -1.5)",),
        ("f32(1e-40, -1e-45, 1e-38, 0.2)",),
        ("f64[7,9]",),
        ("i32[40,9]",),
    ],
}
