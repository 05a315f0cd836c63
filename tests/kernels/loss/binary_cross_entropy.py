"""Reductions and weights; certain predictions."""

OPINFO = 4
CASES = {
    "aten::binary_cross_entropy": [
        ("f32[33,70]u", "f32[33,70]u", None, 0),
        ("f32(0, 1, 0.5, 0)", "f32(0, 1, 1, 1)"),
        ("bf16[40]u", "bf16[40]u", "bf16[40]u", 2),
    ],
}
FAULTS = {
    "no mean": ("out = out / n", "out = out * 1"),
}
REFUSED = {
    "aten::binary_cross_entropy": [
        ("bf16[4]u", "f32[4]u"),
        ("f32[4]u", "f32[4]u", "f64[4]"),
        ("f32[4]u", "f32[4]u", None, -2),
    ]
}
