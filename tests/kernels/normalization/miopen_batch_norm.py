"""Training and not; with running statistics and without."""

CASES = {
    "aten::miopen_batch_norm": [
        ("f32[5,7,3,4]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", True, 0.1, 1e-05),
        ("bf16[5,7,9]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", False, 0.1, 1e-05),
        ("f16[5,7]", "f32[7]", "f32[7]", None, None, True, 0.1, 1e-05),
    ],
}
