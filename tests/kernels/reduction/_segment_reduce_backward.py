"""Ties, zeros and NaN in segments, elements of none, rows."""

OPINFO = 4
CASES = {
    "aten::_segment_reduce_backward": [
        ("f32(3, -3)", "f32(5, 2)", "f32(5, 5, 1, 2, 2, 0, 7)", "max", {"lengths": "i64(3, 3)"}),
        ("f32(3, -3)", "f32(nan, 0)", "f32(nan, nan, 1, 2, 0, 0)", "amin", {"offsets": "i32(0, 3, 6)"}),
        (
            "f32(2, -3, 4, 5, 6)",
            "f32(0, nan, 6, 0, nan)",
            "f32(2, 0, nan, 3, 2, 0, 0, nan, 0)",
            "prod",
            {"lengths": "i64(2, 2, 1, 2, 2)", "initial": 3},
        ),
        ("bf16[2,3]{1,2}", "bf16[2,3]{1,2}", "bf16[5,3]{1,5}", "mean", {"lengths": "i64(2, 3)"}),
        ("f64[3,2,7]", "f64[3,2,7]", "f64[3,9,7]{63,1,9}", "prod", {"lengths": "i64[3,2]=4", "axis": 1}),
        ("f16[0]", "f16[0]", "f16[5]", "sum", {"lengths": "i64[0]"}),
        ("f32[3]", "f32[3]", "f32[70000]", "sum", {"lengths": "i64(2, 69000, 997)"}),
    ],
}
FAULTS = {
    "all have the gradient": ("tl.where(grad > 0, share, grad)", "grad"),
    "other zeros are forgotten": ("rest * 0", "rest"),
    "the first bound too late": ("<= i", "< i"),
}
REFUSED = {
    "aten::_segment_reduce_backward": [
        ("f32[2]", "f32[3]", "f32[7]", "sum", {"lengths": "i64(1, 2, 4)"}),
        ("f64[3]", "f32[3]", "f32[7]", "sum", {"lengths": "i64(1, 2, 4)"}),
    ],
}
