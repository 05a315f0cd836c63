"""Layouts and special values."""

CASES = {
    "aten::logit_backward": [
        ("f32[33,70]", "f32[33,70]u"),
        ("f32(nan, 1, 1, 1, 1, 2)", "f32(nan, 0., 1, 2, -1, 0.5)", 0.1),
        ("bf16[40,30]", "bf16[40,30]u", 0.2),
        ("f64[9]", "f64[9]u"),
    ],
}
