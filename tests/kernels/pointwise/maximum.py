"""Broadcast, promotion, NaN; OpInfo's samples."""

OPINFO = 4
DERIVED = ("aten::_foreach_maximum.List", "aten::_foreach_maximum.Scalar", "aten::_foreach_maximum.ScalarList")
CASES = {
    "aten::maximum": [
        ("f32[33,70]", "f32[70]"),
        ("f32(nan, 1, -inf, -0.)", "f32(0, nan, inf, 0.)"),
        ("i64[7,5]", "f32[5]"),
        ("bf16[40,30]{1,40}", "bf16[40,30]"),
    ],
}
