"""Upper and lower, transposed, unit diagonals; broadcast batches; more than a block."""

OPINFO = 4
CASES = {
    "aten::triangular_solve": [
        ("f64[2,3,4]", "f64[2,3,3]"),
        ("f32[40,37]", "f32[40,40]u", True, True, True),
        ("f32[3,5,2]", "f32[5,5]{1,5}u", False),
        ("f64[3,4,7]", "f64[2,1,4,4]", False, True, True),
        ("f32[0,3]", "f32[0,0]"),
    ],
}
FAULTS = {
    "the wrong triangle": ("upper != transpose", "upper"),
    "no transposition": ("t.mT if transpose else t", "t"),
}
