"""Tall, wide and square; the data alone, the pivots alone; batches that lie otherwise; more than a tile."""

OPINFO = 4
left = ("aten::linalg_lu_factor_ex", {"LU_data": 0, "LU_pivots": 1})
FORWARD = {"aten::lu_unpack": (*left, {"A": "f32[2,70,40]"})}
CASES = {"aten::lu_unpack": [(), (True, False), (False, True)]}
FAULTS = {
    "no unit diagonal": ("(distance == 0).to(x.dtype)", "tl.zeros_like(x)"),
    "transposed": ("permuted(None, pivots, out.mT)", "permuted(None, pivots, out)"),
}
