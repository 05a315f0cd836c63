"""Both sides of where formulas meet; special values."""

CASES = {
    "aten::special_shifted_chebyshev_polynomial_v": [
        ("f32[33,7]", "f32(0, 1, 2, 3, 5, 9, -1)"),
        ("f32(1, -1, 0., 0.5, 2, inf)", "f32(3, 4, 5, 12, 6, 2)"),
        ("f64[7]", "f64(0, 1, 2, 3, 5, 9, 4)"),
    ],
    "aten::special_shifted_chebyshev_polynomial_v.n_scalar": [
        ("f32[33,7]", 3),
    ],
    "aten::special_shifted_chebyshev_polynomial_v.x_scalar": [
        (0.5, "f32(0, 1, 2, 9)"),
    ],
}
REFUSED = {
    "aten::special_shifted_chebyshev_polynomial_v.n_scalar": [("f32[4]", float("inf")), ("f32[4]", float("nan"))]
}
