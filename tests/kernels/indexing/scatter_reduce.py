"""Reductions."""

OPINFO = 4
CASES = {
    "aten::scatter_reduce.two": [
        ("f32[33,70]", 1, "i64[33,9]<70", "f32[40,9]", "sum"),
        ("bf16[7,5,4]{1,7,35}", 0, "i64[9,3,4]{12,1,3}<7", "bf16[9,5,4]", "amax"),
        ("f32[9]", 0, "i64[40]<9", "f32[40]", "prod", {"include_self": False}),
        ("i32[9]", 0, "i64[40]<9", "i32[40]", "mean"),
        ("i64[9]", 0, "i64[5]<9", "i64[5]", "amin", {"include_self": False}),
        ("f64[9]", 0, "i64[5]<9", "f64[5]", "mean", {"include_self": False}),
    ],
}
FAULTS = {"own value once more": ("count + 1", "count + 2")}
