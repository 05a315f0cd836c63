"""Layouts and special values; OpInfo's samples."""

OPINFO = 4
DERIVED = ("aten::_foreach_reciprocal",)
CASES = {
    "aten::reciprocal": [
        ("f32[33,70]{1,33}",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f32(nan, inf, -inf, -0.)",),
        ("c64[40,9]{1,40}",),
        ("c64[]",),
        ("c64(0, inf, infj, 1-infj, nan, -2j, inf-infj, nan+infj)",),
    ],
}
