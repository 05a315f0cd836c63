"""Both reductions, of tensors and numbers."""

OPINFO = 6
CASES = {
    "aten::scatter.reduce": [
        ("f32[33,70]", 1, "i64[33,9]<70", "f32[40,9]", {"reduce": "add"}),
        ("bf16[7,5,4]{1,7,35}", 0, "i64[9,3,4]{12,1,3}<7", "bf16[9,5,4]", {"reduce": "add"}),
        ("f64[9]", 0, "i64[40]<9", "f64[40]", {"reduce": "multiply"}),
        ("i32[9]", 0, "i64[5]<9", "i32[5]", {"reduce": "multiply"}),
        ("f32[]", 0, "i64[]=0", "f32[]", {"reduce": "add"}),
    ],
    "aten::scatter.value_reduce": [
        ("f32[33,70]", 1, "i64[33,9]<70", 2.5, {"reduce": "multiply"}),
        ("f16[9]", 0, "i64[5]<9", 3, {"reduce": "add"}),
        ("i64[9,2]", -1, "i64[9,2]<2", 3, {"reduce": "add"}),
    ],
}
FAULTS = {"always added": ('"sum" if reduce == "add" else "prod"', '"sum"')}
REFUSED = {
    "aten::scatter.value_reduce": [("i8[4]", 0, "i64[2]<4", 300, {"reduce": "add"})],
}
