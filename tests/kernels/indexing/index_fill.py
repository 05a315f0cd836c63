"""Dimensions."""

OPINFO = 4
CASES = {
    "aten::index_fill.int_Scalar": [
        ("f32[33,70]", 1, "i64[9]<70", 2.5),
        ("i64[7,5]{1,7}", 0, "i64(-1, 2)", 3),
    ],
    "aten::index_fill.int_Tensor": [("f32[33,70]", 0, "i64[]<33", "f64[]")],
}
REFUSED = {
    "aten::index_fill.int_Scalar": [("f32[4,3]", 0, "i32[2]<4", 1), ("i8[4,3]", 0, "i64[2]<4", 300)],
}
