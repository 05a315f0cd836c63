"""Numbers and tensors of one number."""

OPINFO = 4
CASES = {
    "aten::fill.Tensor": [
        ("f32[33,70]{1,33}", "f32[]"),
        ("i64[5]", "f32[]"),
        ("bf16[4,5]", "f32[]"),
        ("bool[0,3]", "bool[]"),
    ],
    "aten::fill.Scalar": [
        ("f32[33,70]{1,33}", 2.5),
        ("bool[7]", 2),
        ("c64[4,5]{1,4}", 2 - 1j),
        ("u8[5,2]{1,5}", 255),
    ],
}
REFUSED = {
    "aten::fill.Scalar": [("i8[2]", 300), ("u8[2]", -256), ("f16[2]", 100000.0), ("i32[2]", 2500000000.0)],
}
