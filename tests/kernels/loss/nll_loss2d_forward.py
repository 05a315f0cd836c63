"""Reductions, weights, ignored classes, layouts."""

CASES = {
    "aten::nll_loss2d_forward": [
        ("f32[2,5,3,4]", "i64[2,3,4]<5", None, 1, -100),
        ("f32[2,5,3,4]{60,1,20,5}", "i64[2,3,4]<5", "f32[5]u", 1, 3),
        ("bf16[3,7,20,30]", "i64[3,20,30]<7", None, 0, 2),
        ("f64[3,7,20,30]", "i64[3,20,30]<7", "f64[7]u", 2, 2),
        ("f16[2,5,3,4]", "i64[2,3,4]{1,8,2}<5", None, 2, -100),
    ],
}
FAULTS = {
    "ignores nothing": ("& (target != ignore_index)", ""),
    "no mean": ("return loss / weight, weight", "return loss, weight"),
    "no weights": ("-x * weight", "-x"),
}
