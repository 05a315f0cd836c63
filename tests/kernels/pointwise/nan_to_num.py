"""Every type of floats; integers."""

CASES = {
    "aten::nan_to_num": [
        ("f32(nan, inf, -inf, 1)",),
        ("bf16(nan, inf, -inf, 1)",),
        ("f16(nan, inf, -inf, 1)", 1.5, 2, 3),
        ("f64(nan, inf, -inf, 1)", 1e30),
        ("i32[9]",),
    ],
}
