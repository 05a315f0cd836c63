"""Layouts and dtypes."""

CASES = {
    "aten::miopen_batch_norm_backward": [
        ("f32[5,7,3,4]", "f32[5,7,3,4]", "f32[7]", None, None, "f32[7]", "f32[7]u", 1e-05),
        ("bf16[5,7,9]", "bf16[5,7,9]", "f32[7]", "f32[7]", "f32[7]u", "f32[7]", "f32[7]u", 1e-05),
    ],
}
