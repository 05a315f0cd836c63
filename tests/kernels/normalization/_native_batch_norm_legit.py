"""Training and not."""

OPINFO = 4
CASES = {
    "aten::native_batch_norm": [
        ("f32[5,7,3,4]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", True, 0.1, 1e-05),
        ("bf16[5,7,9]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", False, 0.1, 1e-05),
        ("f32[3,7,13,16]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", True, 0.1, 1e-05),
        ("bf16[44,3,2100]", "f32[3]", "f32[3]", "f32[3]", "f32[3]u", True, 0.1, 1e-05),
        ("f64[5,7]", None, None, None, None, True, 0.1, 1e-05),
        ("bf16[5,7,9]", "bf16[7]", "bf16[7]", "f32[7]", "f32[7]u", True, 0.1, 1e-05),
    ],
    "aten::_native_batch_norm_legit": [
        ("f32[5,7,3,4]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", True, 0.1, 1e-05),
        ("bf16[5,7,9]", "f32[7]", None, "f32[7]", "f32[7]u", True, 0.3, 0.001),
        ("f32[3000,2]", None, None, "f32[2]", "f32[2]u", True, 0.1, 1e-05),
        ("f32[5,7]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", False, 0.1, 1e-05),
    ],
}
FAULTS = {"saved in the dtype of the weight": ("return torch.float32, torch.float32", "return torch.float32, x.dtype")}
