"""Broadcast, promotion, layouts; a number."""

OPINFO = 4
DERIVED = (
    "aten::_foreach_add.List",
    "aten::_foreach_add.Scalar",
    "aten::_foreach_add.ScalarList",
    "aten::_foreach_add.Tensor",
)
CASES = {
    "aten::add.Tensor": [
        ("f32[33,70]", "f32[70]"),
        ("bf16[4,1,6]", "bf16[5,1]"),
        ("f32[40,30]{1,40}", "f32[40,30]"),
        ("i64[7,5]", "f32[5]"),
        ("f32[0,4]", "f32[4]"),
        ("c64[4,5]{1,4}", "f32[5]", {"alpha": 2 - 1j}),
    ],
    "aten::add.Scalar": [
        ("f32[33,70]{1,33}", 2.5),
        ("i64[7]", 3),
        ("bf16[]", -0.5),
        ("c64[33]", 2 - 1j),
    ],
    "aten::_foreach_add.Tensor": [
        (["f32[33]", "f32[4,5]{1,4}", "f32[]", "f32[0,3]"], "f32[]", {"alpha": 0.5}),
        (["bf16[70]", "bf16[3,4]"], "bf16[]"),
    ],
}
REFUSED = {
    "aten::add.Tensor": [("i8[3]", "i8[3]", {"alpha": 300})],
}
