"""Layouts, parameters."""

CASES = {
    "aten::_native_batch_norm_legit_no_training": [
        ("f32[5,7,3,4]{84,1,28,7}", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", 0.1, 1e-05),
        ("bf16[5,7,9]", None, None, "bf16[7]", "bf16[7]u", 0.1, 0.1),
    ],
}
