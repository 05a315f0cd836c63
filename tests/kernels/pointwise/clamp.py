"""Either bound or both, of other types."""

CASES = {
    "aten::clamp": [
        ("f32[33,70]", -0.5, 0.5),
        ("bf16[40,30]{1,40}", None, 0.25),
        ("i64[7,5]", -2, None),
        ("f32(nan, inf, -inf, 0)", -1, 1),
        ("i32[9]", 0.5, 2.5),
    ],
}
REFUSED = {
    "aten::clamp": [("i8[3]", -300), ("u8[3]", None, 256)],
}
