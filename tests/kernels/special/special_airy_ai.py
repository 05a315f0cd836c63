"""Both sides of where formulas meet; the first zeros; phases of large arguments; what is too small; special values."""

OPINFO = 2
CASES = {
    "aten::special_airy_ai": [
        ("f32[33,70]{1,33}",),
        ("f32(nan, inf, -inf, -0., 0, 0.5, -1.5, 1.99, 2, 2.01, -2.01, -7.9, -8, -8.1, 30, 150, -1e5, -1e9, 1e30)",),
        ("f64(-2.338107410459767, -4.087949444130971, -5.5205598, -7.99, -8.01, 1.999, 2.001, -1.999, -2.001)",),
        ("f64(1e-300, -1e-9, 0.1, -11, -100, -1000, -123456.789, -1e8, -9e9)",),
        ("f64(8, 20.5, 50.3, 90.1, 101.7)",),
        ("i32[40,9]",),
    ],
}
FAULTS = {
    "no second series": ("(sine - cosine) * q * (1.5 / power)", "(sine - cosine) * q * 0"),
    "a phase that is rounded": (
        "angle * 0.6666666666666666 + small * 0.6666666666666666",
        "power * 0.6666666666666666 + angle * 0",
    ),
    "an exponent that is rounded": (
        "rest = head * 9.934107462565104e-09 + (power - head + small)",
        "rest = (power - head)",
    ),
}
