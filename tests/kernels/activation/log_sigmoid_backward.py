"""Layouts and special values."""

CASES = {
    "aten::log_sigmoid_backward": [
        ("f32[33,70]", "f32[33,70]"),
        ("bf16[40,30]", "bf16[40,30]"),
        ("f64[7,9]", "f64[7,9]"),
        ("f32(1, 1, 2)", "f32(100, -100, -0.)"),
    ],
}
FORWARD = {"aten::log_sigmoid_backward": ("aten::log_sigmoid_forward", {"buffer": 1}, {})}
