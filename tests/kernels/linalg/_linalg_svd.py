"""Tall, wide, square; all columns and the first ones; odd and even numbers of columns; more than a tile; batches that
lie otherwise; rank 1; no rank; no elements."""

OPINFO = 4
CASES = {
    "aten::_linalg_svd": [
        ("f64[2,5,3]", True),
        ("f32[2,4,6]{1,2,8}", True),
        ("f32[35,34]",),
        ("f64[3,70]", False),
        ("f64[20,20]", False, False),
        ("f32[5,4]=1", True),
        ("f32[3,2]=0",),
        ("f32[2,3,0]", True),
    ],
}
FAULTS = {
    "signs that do not go together": ("tl.where(y < 0, -x, x)", "x"),
    "one sweep": ("sweep < SWEEPS", "sweep < 1"),
    "lengths in another order": ("else -tl.sqrt(total)", "else tl.sqrt(total)"),
    "columns that were not turned": ("u if tall else vh.mT, False", "u if tall else vh.mT, True"),
}
