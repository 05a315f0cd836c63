"""Tall, wide and square; the data alone, the pivots alone, which may be strided; more than a tile."""

OPINFO = 4
CASES = {
    "aten::lu_unpack": [
        ("f32[2,70,40]", "i32[2,40]{80,2}=70"),
        ("f32[2,70,40]", "i32[2,40]=70", True, False),
        ("f64[5,9]", "i32[5]{0}=5", False, True),
    ]
}
FAULTS = {
    "no unit diagonal": ("(distance == 0).to(x.dtype)", "tl.zeros_like(x)"),
    "transposed": ("permuted(None, pivots, out.mT)", "permuted(None, pivots, out)"),
    "dense pivots": ("pivots_ptr + k * plain_value(strides[0])", "pivots_ptr + k"),
}
