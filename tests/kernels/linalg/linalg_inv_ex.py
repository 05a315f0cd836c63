"""Batches; more than a tile; errors that there are none of; no elements."""

OPINFO = 4
CASES = {
    "aten::linalg_inv_ex": [
        ("f64[2,3,3]",),
        ("f32[40,40]{1,40}",),
        ("f64[2,2,5,5]{50,25,1,5}", {"check_errors": True}),
        ("f32[0,0]",),
    ],
}
FAULTS = {
    "rows as they were": (
        "source = tl.where(source == k, other, tl.where(source == other, k, source))",
        "source = rows",
    ),
    "the upper triangle alone": (
        "permuted(b, pivots, out), out, False, True)",
        "permuted(b, pivots, out), out, True, True)",
    ),
}
