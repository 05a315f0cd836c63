"""Factors, orders of dimensions, a large prime, normalizations."""

OPINFO = 6
CASES = {
    "aten::_fft_c2r": [
        ("c64[3,18]", [1], 0, 35),
        ("c64[6,5,4]{1,24,6}", [0, 2], 1, 7),
        ("c128[68]", [0], 2, 134),
        ("c64[5,5]", [1], 2, 8),
    ],
}
FAULTS = {
    "a half that is not conjugate": ("tl.where(mirrored, -im, im)", "tl.where(mirrored, im, im)"),
}
REFUSED = {"aten::_fft_c2r": [("c64[3,5]", [1], 0, 12)]}
