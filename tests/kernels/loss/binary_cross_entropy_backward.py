"""Reductions, weights, and probabilities at which the slope is infinite."""

CASES = {
    "aten::binary_cross_entropy_backward": [
        ("f32[33,7]", "f32[33,7]u", "f32[33,7]u", None, 0),
        ("f32[]", "f32[33,7]u", "f32[33,7]u"),
        ("f32[]", "f32[40]u", "f32[40]u", "f32[40]u", 2),
        ("bf16[5,4]", "bf16[5,4]u", "bf16[5,4]u", "bf16[5,4]u", 0),
        ("f64[2]", "f64(0, 1)", "f64[2]u", None, 0),
    ],
}
REFUSED = {
    "aten::binary_cross_entropy_backward": [
        ("f64[4]", "f32[4]u", "f32[4]u"),
        ("f32[4]", "f32[4]u", "bf16[4]u"),
    ]
}
