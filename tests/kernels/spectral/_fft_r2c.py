"""Factors, orders of dimensions, a large prime, normalizations."""

OPINFO = 6
CASES = {
    "aten::_fft_r2c": [
        ("f32[3,35]", [1], 0, True),
        ("f32[6,5,7]{1,42,6}", [2, 0], 1, True),
        ("f64[134]", [0], 2, False),
        ("f32[2,134]", [1], 0, True),
        ("f32[5,8]", [0, 1], 0, False),
    ],
}
FAULTS = {
    "an element too many": ("mask &= at < plain_value(kept)", "mask &= at <= plain_value(kept)"),
}
REFUSED = {"aten::_fft_r2c": [("f32[0,5]", [1], 0, True)]}
