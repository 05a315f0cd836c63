"""Layouts and special values."""

CASES = {
    "aten::mish_backward": [
        ("f32[33,70]{1,33}", "f32[33,70]{1,33}"),
        ("f32(1, 1, 1, 1, nan, 1, 2, 1, 1)", "f32(nan, inf, -inf, -0., 0.5, -1.5, 30, -30, 3)"),
        ("bf16[40,30]", "bf16[40,30]"),
        ("f64[7,9]", "f64[7,9]"),
    ],
}
REFUSED = {"aten::mish_backward": [("f64[4]", "f32[4]")]}
