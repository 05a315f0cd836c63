"""Every reduction; broadcast."""

CASES = {
    "aten::binary_cross_entropy_with_logits": [
        ("f32[33,70]", "f32[33,70]u", None, None, 0),
        ("f32[33,70]", "f32[33,70]u", "f32[70]", None, 1),
        ("bf16[40,30]", "bf16[40,30]u", None, "bf16[30]", 2),
        ("f64[7,5]", "f64[7,5]u", "f64[7,5]", "f64[5]", 1),
        ("f32(inf, -inf, nan, 100)", "f32(0, 1, 0.5, 0.)", None, None, 0),
    ],
}
