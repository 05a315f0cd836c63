"""One bound or both; promotion; NaN."""

CASES = {
    "aten::clamp.Tensor": [
        ("f32[33,70]", "f32[70]", "f32[33,1]"),
        ("i64[9]", "f32[9]", None),
        ("f32(nan, 1, 1)", None, "f32(1, nan, 0)"),
        ("f32(1, 2, 3)", "f32(nan, 1, 4)", "f32(1, nan, 2)"),
    ],
}
