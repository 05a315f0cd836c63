"""Factors, orders of dimensions, a large prime, normalizations."""

OPINFO = 6
CASES = {
    "aten::_fft_c2c": [
        ("c64[3,35]", [1], 0, True),
        ("c64[6,5,7]{1,42,6}", [2, 0], 1, False),
        ("c128[131,2]", [0], 2, True),
        ("c64[4096]", [0], 2, False),
        ("c64[390]", [0], 0, True),
        ("c64[32,16,2]", [0, 1], 1, True),
        ("c64[512,3]", [0], 0, False),
        ("c64[2,3]{3,1}", [], 0, True),
    ],
}
FAULTS = {
    "twiddle factors of the other direction": ("SIGN * tl.load(twiddle + 1", "-SIGN * tl.load(twiddle + 1"),
    "real parts for imaginary ones": ("re + (a if SIGN == 1 else b,)", "re + (b if SIGN == 1 else a,)"),
    "a chirp of the other sign": ("-im, 0.0)", "im, 0.0)"),
}
REFUSED = {"aten::_fft_c2c": [("c64[0,5]", [1], 0, True)]}
