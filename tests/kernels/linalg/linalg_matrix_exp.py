"""Batches that lie otherwise; more than a tile; small and large norms; no elements."""

OPINFO = 3
CASES = {
    "aten::linalg_matrix_exp": [
        ("f64[2,3,3]",),
        ("f32[2,2,5,5]{50,25,1,5}",),
        ("f64[35,35]u",),
        ("f64[4,4]=0.001",),
        ("f32[3,3]=0",),
        ("bf16[2,5,5]",),
        ("f16[4,4]",),
        ("f32[0,0]",),
    ],
}
FAULTS = {
    "never squared": ("range(0, halvings.to(tl.int32))", "range(0, 0)"),
    "a short polynomial": ("for k in range(1, DEGREE)", "for k in range(DEGREE - 3, DEGREE)"),
}
