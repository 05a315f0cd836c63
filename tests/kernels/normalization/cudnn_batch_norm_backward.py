"""Layouts and dtypes."""

CASES = {
    "aten::cudnn_batch_norm_backward": [
        ("f32[5,7,3,4]", "f32[5,7,3,4]", "f32[7]", None, None, "f32[7]", "f32[7]u", 1e-05, "u8[0]"),
        ("bf16[5,7,9]", "bf16[5,7,9]", "f32[7]", "f32[7]", "f32[7]u", "f32[7]", "f32[7]u", 1e-05, "u8[0]"),
    ],
}
