"""Numbers and tensors as exponents."""

OPINFO = 4
CASES = {
    "aten::pow.Tensor_Scalar": [
        ("f32[33,70]", 2),
        ("f32[33]u", 0.5),
        ("bf16[4,5]{1,4}", 3),
        ("i64[7]", 2),
        ("f32(nan, inf, 0, -2)", 0),
    ],
    "aten::pow.Scalar": [
        (2, "f32[33,70]"),
        (1, "f32(nan, inf, 0, -2)"),
        (3, "i64[7]<9"),
    ],
}
REFUSED = {
    "aten::pow.Tensor_Scalar": [("i64[3]", -1), ("i8[3]", 300)],
}
