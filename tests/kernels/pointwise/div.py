"""Broadcast, promotion, layouts; a number."""

OPINFO = 4
DERIVED = (
    "aten::_foreach_div.List",
    "aten::_foreach_div.Scalar",
    "aten::_foreach_div.ScalarList",
    "aten::_foreach_div.Tensor",
)
CASES = {
    "aten::div.Tensor": [
        ("f32[33,70]", "f32[70]"),
        ("bf16[4,1,6]", "bf16[5,1]"),
        ("f32[40,30]{1,40}", "f32[40,30]"),
        ("i64[7,5]", "f32[5]"),
        ("f32[0,4]", "f32[4]"),
        ("c64[4,5]{1,4}", "f32[5]"),
        ("c64[33]", "c64[33]"),
    ],
    "aten::div.Scalar": [
        ("f32[33,70]{1,33}", 2.5),
        ("i64[7]", 3),
        ("bf16[]", -0.5),
    ],
}
