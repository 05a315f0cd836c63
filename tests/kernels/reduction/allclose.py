"""Close and not; NaN, infinities, integers, what is broadcast."""

OPINFO = 4
CASES = {
    "aten::allclose": [
        ("f32[70,33]=2", "f32[33]=2.00001"),
        ("f32[33,70]", "f32[33,70]"),
        ("f32(nan, 1)", "f32(nan, 1)"),
        ("f64(nan, inf, -inf)", "f64(nan, inf, -inf)", 0.1, 0.0, True),
        ("f32(inf, 1)", "f32(1, 1)", 0.5, 1.0),
        ("f32(1, 1)", "f32(inf, 1)", 0.5, 1.0),
        ("f64(10, 1)", "f64(20, 1)", 0.5),
        ("f64(20, 1)", "f64(10, 1)", 0.5),
        ("i64(10, 1)", "i64(10, 2)", 0.0, 1.0),
        ("i8(10, 1)", "i8(10, 2)", 0.0, 0.0),
        ("bf16[0,3]", "bf16[0,3]"),
    ],
}
FAULTS = {"of the first": ("tl.abs(rtol * y)", "tl.abs(rtol * x)")}
