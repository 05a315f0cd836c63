"""Small, large and mixed rates, none, types and layouts."""

CASES = {
    "aten::poisson": [
        ("f32[33,250]u",),
        ("f32[250,33]{1,250}=30",),
        ("f16[4000]<40",),
        ("bf16[4000]=2",),
        ("f64[40,100]=900",),
        ("f32(0., 0., 3., 0.)",),
    ],
}

FAULTS = {
    "half the rate": ("rate = rate.to(tl.float64)", "rate = 0.5 * rate.to(tl.float64)"),
    "less of large rates": ("large = tl.where(few, 10.0, rate)", "large = tl.where(few, 10.0, 0.9 * rate)"),
    "the rate itself": ("return k, at_once |", "return rate, at_once |"),
}
