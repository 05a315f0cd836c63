"""Tall, wide, square; tolerances of one number and of several; rank 1; symmetric ones; no elements."""

OPINFO = 4
CASES = {
    "aten::linalg_pinv.atol_rtol_tensor": [
        ("f64[2,5,3]",),
        ("f32[35,40]",),
        ("f32[2,3,4]{1,2,6}", {"atol": "f32(1.2, 0.1)"}),
        ("f64[3,3]", {"rtol": "f64[2,1]u", "atol": "f32[3]u"}),
        ("f32[2,4,4]", {"hermitian": True, "rtol": "f32[]=0.3"}),
        ("f32[5,4]=1",),
        ("f32[3,0]",),
    ],
}
FAULTS = {
    "no tolerance": ("tl.abs(value) > least", "tl.abs(value) > 0"),
    "the largest is the first": ("tl.maximum(tl.abs(first), tl.abs(last))", "tl.abs(last)"),
    "transposed": ("left, right = vh.mT, u.mT", "left, right = vh, u"),
}
