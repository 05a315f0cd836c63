"""Long ones; layouts; NaN."""

OPINFO = 4
CASES = {
    "aten::max": [
        ("f32[70000]",),
        ("bf16[33,70]{1,33}",),
        ("f32(nan, 1, -inf, inf)",),
        ("bool[40,9]",),
    ],
}
REFUSED = {
    "aten::max": [("f32[0]",)],
}
