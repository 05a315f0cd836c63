"""Reductions, with and without a number to begin with; few long segments, many short ones; rows; empty ones."""

OPINFO = 4
CASES = {
    "aten::segment_reduce": [
        ("f32[9]", "mean", {"lengths": "i64(3, 0, 5, 1)"}),
        ("f32[9]", "mean", {"lengths": "i64(3, 0, 5, 1)", "initial": 0}),
        ("f32(1, nan, 2, -inf, 5, 5)", "max", {"offsets": "i32(0, 2, 2, 6)", "initial": -1.5, "unsafe": True}),
        ("bf16[5,3]{1,5}", "amin", {"lengths": "i64(2, 0, 3)"}),
        ("f64[3,6,7]{42,1,6}", "prod", {"offsets": "i64[3,1]=0", "axis": 1}),
        ("f32[2,9000]", "sum", {"offsets": "i64[2,2]{0,1}=0", "axis": 1, "unsafe": True}),
        ("f16[9000,3]", "mean", {"lengths": "i64(2, 8996, 2)", "initial": 2}),
        ("f32[70000]", "max", {"lengths": "i64[35000]=2"}),
        ("f32[40000]", "sum", {"lengths": "i64(20000, 20000)", "unsafe": True}),
    ],
}
FAULTS = {
    "the divisor is one too large": ("tl.maximum(length, 1)", "tl.maximum(length + 1, 1)"),
    "the first part of long segments alone": ("for part in range(parts):", "for part in range(1):"),
    "a mean of nothing is 0": ('float("nan")) if MEAN == 1', "0) if MEAN == 1"),
}
REFUSED = {
    "aten::segment_reduce": [
        ("f32[2,5]", "sum", {"lengths": "i64[1,2]=1", "axis": 1}),
        ("f32[7]", "sum", {"lengths": "i64(3, 1)"}),
        ("f32[7]", "sum", {"lengths": "i64(9, -2)"}),
        ("f32[7]", "sum", {"offsets": "i64(0, 9)"}),
        ("f32[7]", "sum", {"offsets": "i64(0, 3, 1)"}),
    ],
}
