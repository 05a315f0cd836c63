"""Layouts and special values."""

CASES = {
    "aten::_prelu_kernel_backward": [
        ("f32[33,70]", "f32[33,70]", "f32[1,70]"),
        ("f32[4,5,6]", "f32[4,5,6]", "f32[1,5,1]"),
        ("bf16[4,5]", "bf16[4,5]", "bf16[1,5]"),
    ],
}
