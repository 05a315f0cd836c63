"""Layouts, parameters."""

CASES = {
    "aten::_batch_norm_with_update": [
        ("f32[5,7,3,4]", "f32[7]", "f32[7]", "f32[7]", "f32[7]u", 0.1, 1e-05),
    ],
}
