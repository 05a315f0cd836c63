"""Tall, wide, square; batches; more than a tile; a matrix without an inverse; no elements."""

OPINFO = 4
CASES = {
    "aten::linalg_lu_factor_ex": [
        ("f64[2,3,3]",),
        ("f32[70,90]",),
        ("f32[130,20]{1,130}",),
        ("f64[2,2,5,17]{170,85,1,5}",),
        ("f32[3,3]=0",),
        ("f32[2,0,3]",),
    ],
}
FAULTS = {
    "no pivots": ("row = pivot_row(x_ptr + k * stride, k, m, LONG)", "row = k"),
    "info of the last": ("(info == 0) & (pivot == 0)", "pivot == 0"),
}
