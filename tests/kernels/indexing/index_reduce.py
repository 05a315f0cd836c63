"""Reductions."""

OPINFO = 4
CASES = {
    "aten::index_reduce": [
        ("f32[33,7]", 1, "i64[9]<7", "f32[33,9]", "prod"),
        ("bf16[7,5,4]{1,7,35}", 0, "i64[9]<7", "bf16[9,5,4]", "amax"),
        ("i32[9]", 0, "i64[40]<9", "i32[40]", "mean"),
        ("f64[9,2]", 0, "i64[5]<9", "f64[5,2]", "amin", {"include_self": False}),
    ],
}
FAULTS = {"own value once more": ("count + 1", "count + 2")}
REFUSED = {
    "aten::index_reduce": [
        ("f32[4,3]", 0, i, s, "amax") for i, s in (("u8[2]<4", "f32[2,3]"), ("i64[2]<4", "f64[2,3]"))
    ]
}
