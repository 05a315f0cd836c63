"""Reductions, weights, ignored classes, layouts."""

CASES = {
    "aten::nll_loss2d_backward": [
        ("f32[]", "f32[2,5,3,4]", "i64[2,3,4]<5", None, 1, -100),
        ("f32[]", "f32[2,5,3,4]", "i64[2,3,4]<5", "f32[5]u", 1, 3),
        ("f32[]", "f32[1,70,34,33]", "i64[1,34,33]<70", "f32[70]u", 1, 3),
        ("bf16[3,20,30]{1,90,3}", "bf16[3,7,20,30]", "i64[3,20,30]<7", None, 0, 2),
        ("f64[1]", "f64[3,7,20,30]", "i64[3,20,30]{1,90,3}<7", "f64[7]u", 2, 2),
    ],
}
FORWARD = {"aten::nll_loss2d_backward": ("aten::nll_loss2d_forward", {"total_weight": 1}, {})}
FAULTS = {
    "ignores nothing": ("(target != ignore_index) & ", ""),
    "no mean": ("MEAN=reduction == 1", "MEAN=False"),
}
