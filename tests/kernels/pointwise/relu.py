"""Layouts and special values; OpInfo's samples."""

OPINFO = 4
CASES = {
    "aten::relu": [
        ("f32[33,70]{1,33}",),
        ("bf16[4,5,6]{60,1,10}",),
        ("f32(nan, inf, -inf, -0.)",),
    ],
}
REFUSED = {
    "aten::relu": [("bool[3]",)],
}
