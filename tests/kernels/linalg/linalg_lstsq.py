"""All drivers; tall, wide, square; vectors; broadcast batches; more than a tile; rank 1; rcond; no elements."""

OPINFO = 6
CASES = {
    "aten::linalg_lstsq": [
        ("f64[2,5,3]", "f64[2,5,2]", {"driver": "gelsd"}),
        ("f32[2,1,4,6]{1,1,2,8}", "f32[1,3,4,2]"),
        ("f32[40,34]", "f32[40,35]", {"driver": "gels"}),
        ("f64[2,5,3]", "f64[2,5]", {"driver": "gelss"}),
        ("f32[5,4]=1", "f32[5,2]", {"driver": "gelsd"}),
        ("f64[6,4]", "f64[6,2]", 0.3, {"driver": "gelsd"}),
        ("f64[3,3]", "f64[3,1]", 0.0, {"driver": "gelsd"}),
        ("f64[3,3]", "f64[3,1]", 1e-6),
        ("f64[3,2]", "f64[3,1]", -1.0, {"driver": "gelss"}),
        ("f32[3,0]", "f32[3,2]", {"driver": "gels"}),
        ("f32[0,3]", "f32[0,2]"),
        ("f32[4,3]", "f32[4,0]"),
    ],
}
FAULTS = {
    "all values count": ("return step * size", "return 0.0"),
    "rcond is not looked at": ("return step / 2 if outside else rcond", "return step / 2"),
    "residuals of the sides": ("residual -= a[:, None] * x[None, :]", "residual -= 0"),
    "rank of all": ("(x > 0).to(tl.int64)", "(x >= 0).to(tl.int64)"),
}
