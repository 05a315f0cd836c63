"""Upper and lower; broadcast batches; more than a block; no elements."""

OPINFO = 4
CASES = {
    "aten::cholesky_solve": [
        ("f64[2,3,4]", "f64[2,3,3]"),
        ("f64[5,2]", "f64[3,5,5]", True),
        ("f64[40,3]{1,40}", "f64[40,40]u"),
        ("f32[0,3]", "f32[0,0]"),
    ],
}
FAULTS = {
    "the wrong triangle": ("lower = rooted.mT if upper else rooted", "lower = rooted"),
}
