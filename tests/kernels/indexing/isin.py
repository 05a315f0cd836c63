"""Few test elements and many, types that promote."""

OPINFO = 4
CASES = {
    "aten::isin.Tensor_Tensor": [
        ("i64[33,70]", "i64(3, -2)"),
        ("i64[300]<500", "i64[100]<500"),
        ("f32(nan, 0, inf, -0., 3, 5)", "f32[90]=0"),
        ("f32(nan, 0, inf, -0., 3, 5)", "f32(-0., nan, 3)", {"invert": True}),
        ("i16(257, -3, 5, 1)", "i32[100]"),
        ("f64[100]", "f64[0]"),
    ],
}
FAULTS = {"compared with none": ("is_member = is_member | (x ==", "is_member = is_member & (x ==")}
