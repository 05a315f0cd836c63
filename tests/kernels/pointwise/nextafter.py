"""Up and down; zeros, infinities, NaN."""

CASES = {
    "aten::nextafter": [
        ("f32[33,70]", "f32[70]"),
        ("f32(nan, inf, 0., -0., 1, 1)", "f32(1, 0., 1, -1, 1, nan)"),
        ("bf16[40,30]{1,40}", "bf16[40,30]"),
        ("f64[7,5]", "f64[5]"),
    ],
}
