"""Layouts, parameters."""

CASES = {
    "aten::_native_batch_norm_legit.no_stats": [
        ("f32[5,7,3,4]{84,1,28,7}", "f32[7]", "f32[7]", True, 0.1, 1e-05),
        ("f16[5,7,9]", "f16[7]", "f16[7]", True, 0.1, 1e-05),
    ],
}
