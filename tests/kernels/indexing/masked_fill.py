"""Masks that broadcast, and that the tensor is broadcast to."""

OPINFO = 4
CASES = {
    "aten::masked_fill.Scalar": [
        ("f32[33,70]", "bool[70]", 2.5),
        ("bf16[5,4]{1,5}", "bool[3,1,4]", -1),
        ("f32[33,70]", "bool[33,1]", float("-inf")),
    ],
    "aten::masked_fill.Tensor": [
        ("f32[33,70]", "bool[33,70]{1,33}", "f32[]"),
        ("f32[4]", "bool[4]", "i64[]"),
    ],
}
REFUSED = {
    "aten::masked_fill.Scalar": [("i8[3]", "bool[3]", 300)],
}
