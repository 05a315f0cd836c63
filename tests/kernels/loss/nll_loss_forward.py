"""Reductions, weights, ignored classes."""

CASES = {
    "aten::nll_loss_forward": [
        ("f32[9,5]", "i64[9]<5", None, 1, -100),
        ("f32[9,5]", "i64[9]<5", "f32[5]u", 2, 3),
        ("bf16[300,7]", "i64[300]<7", None, 0, -100),
        ("f32[5]", "i64[]<5", None, 1, -100),
        ("f32[9,5]{1,9}", "i64[9]<5", "f32[5]u", 1, 2),
    ],
}
FAULTS = {
    "ignores nothing": ("& (target != ignore_index)", ""),
    "no mean": ("out = out / total", "out = out / 1"),
}
REFUSED = {
    "aten::nll_loss_forward": [("f32[3,4]", "i32[3]<4", None, 1, -100)],
}
