"""Tall, wide and square; batches; more than a tile; no elements."""

OPINFO = 4
CASES = {
    "aten::linalg_lu": [
        ("f64[2,3,3]",),
        ("f32[40,70]",),
        ("f32[2,33,5]{165,1,33}",),
        ("f32[2,3,0]",),
        ("f32[0,3]",),
    ],
}
FAULTS = {
    "transposed": ("permuted(None, pivots, out.mT)", "permuted(None, pivots, out)"),
}
