"""OpInfo's samples; dimensions in another order; no elements."""

OPINFO = 4
CASES = {
    "aten::_conj_physical": [
        ("c64[3,5]{1,3}",),
        ("c128[7]",),
        ("c64[0,4]",),
        ("c64[]",),
    ],
}
FAULTS = {"nothing changed": ("b * -1.0", "b * 1.0")}
