"""Orders, margins, weights, reductions; one row."""

CASES = {
    "aten::multi_margin_loss_backward": [
        ("f32[9]", "f32[9,5]", "i64[9]<5", 1, 1, None, 0),
        ("f32[]", "f32[70,90]{1,70}", "i64[70]<90", 2, 0.5, "f32[90]u", 1),
        ("f64[]", "f64[9,5]", "i64[9]<5", 2, -0.25, "f64[5]u", 2),
        ("f32[]", "f32[5]", "i64[]<5", 1, 1, None, 0),
        ("f32[]", "f32[2,1500]", "i64[2]<1500", 1, 1),
    ],
}
FAULTS = {
    "its own class like others": ("tl.where(cols[None, :] == target[:, None], -total[:, None], slope)", "slope"),
    "no mean": ("class_count * n if reduction == 1 else class_count", "class_count"),
}
REFUSED = {"aten::multi_margin_loss_backward": [("f32[9]", "f32[9,5]", "i64[8]<5", 1, 1, None, 0)]}
