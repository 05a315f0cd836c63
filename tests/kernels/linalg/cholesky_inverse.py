"""Upper and lower; more than a block; no elements."""

OPINFO = 4
CASES = {
    "aten::cholesky_inverse": [
        ("f64[2,3,3]",),
        ("f64[5,5]{1,5}", True),
        ("f64[20,20]u",),
        ("f32[0,0]",),
    ],
}
FAULTS = {
    "the wrong triangle": ("lower = rooted.mT if upper else rooted", "lower = rooted"),
}
