"""Rows of which nothing is left."""

OPINFO = 4
CASES = {
    "aten::_safe_softmax": [
        ("f32(-inf, -inf, -inf)", 0),
        ("f32[33,70]", 1),
        ("f32[4,37]", 1, "torch.float64"),
        ("f64[4,37]", 0),
        ("f32[66,70]", 1),
    ],
}
