"""Reductions; one row; lists that end, that are empty and that name a class twice."""

CASES = {
    "aten::multilabel_margin_loss_backward": [
        ("f32[9]", "f32[9,5]", "i64[9,5]<5", 0),
        ("f32[]", "f32[3,70]{1,3}", "i64[3,70]<70", 1),
        ("f64[]", "f64[9,5]", "i64[9,5]<3", 2),
        ("f32[]", "f32[5]", "i64(2, 2, 0, -1, 1)", 1),
        ("f32[]", "f32[40]", "i64[40]<20", 2),
        ("f32[]", "f32[3]", "i64(-1, 2, 0)", 0),
    ],
}
FORWARD = {
    "aten::multilabel_margin_loss_backward": ("aten::multilabel_margin_loss_forward", {"is_target": 1}, {}),
}
FAULTS = {
    "no mean": ("n * classes if reduction == 1 else classes", "classes"),
    "a class named twice counts once": ("times.to(OPMATH) * ", "(times > 0).to(OPMATH) * "),
}
REFUSED = {
    "aten::multilabel_margin_loss_backward": [
        ("f32[9]", "f32[9,5]", "i64[9,5]<5", 0, "f32[8,5]"),
        ("f32[8]", "f32[9,5]", "i64[9,5]<5", 0, "f32[9,5]"),
    ],
}
