"""Offsets and dimensions."""

OPINFO = 4
CASES = {
    "aten::diagonal_scatter": [
        ("f32[33,70]", "f32[33]"),
        ("f32[5,3,4]{1,5,15}", "f32[3,4]", -1, 0, 2),
        ("c64[5,3]", "c64[3]"),
        ("f32[5,3]{6,2}@7", "f32[3]"),
    ],
}
REFUSED = {"aten::diagonal_scatter": [("f32[4,3]", "f32[2]")]}
