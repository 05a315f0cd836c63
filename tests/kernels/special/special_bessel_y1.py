"""Both sides of where formulas meet; the first zeros; phases of large arguments; special values."""

OPINFO = 2
CASES = {
    "aten::special_bessel_y1": [
        ("f32[33,70]{1,33}",),
        ("f32(nan, inf, -inf, -0., 0, 0.5, -1.5, 7.9, 8, 8.1, 30, 1e5, 1e30)",),
        ("f64(0.8935769662791675, 2.197141326031017, 2.404825557695773, 3.8317059702075125, 5.5, 7.99, 8.01)",),
        ("f64(1e-300, 1e-9, 0.1, 1, 24, 26, 1000, 123456.789, 1e15, 1e200)",),
        ("i32[40,9]",),
    ],
}
FAULTS = {"no series beyond": ("return p, q * z", "return p, q * 0")}
