"""OpInfo's samples; dimensions in another order; no elements."""

OPINFO = 4
CASES = {
    "aten::_conj_physical": [
        ("c64[3,5]{1,3}",),
        ("c128[7]",),
        ("c64[0,4]",),
        ("c64[]",),
        ("c64[3,5]*",),
    ],
}
FAULTS = {
    "nothing changed": ("a, b * -1.0", "a, b * 1.0"),
    "the bit ignored": ("conjugated, negated = out.is_conj() != value.is_conj()", "conjugated, negated = True"),
}
