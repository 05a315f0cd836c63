"""Numbers and tensors; promotion; NaN."""

CASES = {
    "aten::clamp_min": [
        ("f32[33,70]", 0.5),
        ("i64[9]", 1.5),
        ("f32(nan, -0., inf)", 0),
    ],
    "aten::clamp_min.Tensor": [
        ("f32[33,70]", "f32[70]"),
        ("i64[9]", "f32[9]"),
        ("f32(nan, 1)", "f32(1, nan)"),
    ],
}
REFUSED = {
    "aten::clamp_min": [("i8[3]", 300)],
}
