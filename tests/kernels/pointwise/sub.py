"""Broadcast, promotion, layouts; a number."""

OPINFO = 4
DERIVED = ("aten::_foreach_sub.List", "aten::_foreach_sub.Scalar", "aten::_foreach_sub.ScalarList")
CASES = {
    "aten::sub.Tensor": [
        ("f32[33,70]", "f32[70]"),
        ("bf16[4,1,6]", "bf16[5,1]"),
        ("f32[40,30]{1,40}", "f32[40,30]"),
        ("i64[7,5]", "f32[5]"),
        ("f32[0,4]", "f32[4]"),
        ("c64[4,5]{1,4}", "f32[5]", {"alpha": 2 - 1j}),
        ("c64[33]", "c64[33]"),
    ],
    "aten::sub.Scalar": [
        ("f32[33,70]{1,33}", 2.5),
        ("i64[7]", 3),
        ("bf16[]", -0.5),
    ],
}
REFUSED = {
    "aten::sub.Tensor": [("i8[3]", "i8[3]", {"alpha": 300})],
}
