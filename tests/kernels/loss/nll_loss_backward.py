"""Reductions, weights, ignored classes, many classes."""

CASES = {
    "aten::nll_loss_backward": [
        ("f32[]", "f32[9,5]", "i64[9]<5", None, 1, -100),
        ("f32[]", "f32[9,5]", "i64[9]<5", "f32[5]u", 2, 3),
        ("bf16[300]", "bf16[300,7]", "i64[300]<7", None, 0, -100),
        ("f16[3]", "f16[3,5000]", "i64[3]<5000", "f16[5000]u", 0, -100),
        ("f32[]", "f32[5]", "i64[]<5", None, 1, -100),
        ("f32[]", "f32[9,5]{1,9}", "i64[9]<5", "f32[5]u", 1, 2),
    ],
}
FORWARD = {"aten::nll_loss_backward": ("aten::nll_loss_forward", {"total_weight": 1}, {})}
REFUSED = {
    "aten::nll_loss_backward": [("f32[]", "f32[3,4]", "i32[3]<4", None, 1, -100, "f32[]")],
}
