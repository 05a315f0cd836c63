"""Along rows and columns, long rows and columns, special values."""

CASES = {
    "aten::_softmax": [
        ("f32[33,70]", 1, False),
        ("f32[33,70]", 0, False),
        ("bf16[4,5,130]", -1, False),
        ("f32[5,3000]", 1, False),
        ("f32[2,300,18]", 1, False),
        ("bf16[1100,20]", 0, False),
        ("f32[3,4]{1,3}", 1, False),
        ("f32(nan, 1, 2)", 0, False),
        ("f32(inf, 1, 2)", 0, False),
        ("f64[4,37]", 1, False),
        ("f32[66,70]", 1, False),
    ],
}
FAULTS = {
    "no peak": ("tl.exp(x - peak) / total", "tl.exp(x) / total"),
    "what is beyond a power of two is not summed": (
        "combination = combined(combination, folded(spread(MAP(*rest_values), KIND), KIND), KIND)",
        "combination = combination",
    ),
    "padding counts": ("mask=mask, other=PADDING", "mask=mask, other=0"),
}
