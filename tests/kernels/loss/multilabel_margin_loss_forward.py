"""Reductions; one row and a number alone; lists that end, that are empty and that name a class twice."""

CASES = {
    "aten::multilabel_margin_loss_forward": [
        ("f32[9,5]", "i64[9,5]<5", 0),
        ("f32[3,70]{1,3}", "i64[3,70]<70", 1),
        ("f64[9,5]", "i64[9,5]<5", 2),
        ("f32[5]", "i64(2, 2, 0, -1, 1)", 1),
        ("f32[3]", "i64(-1, 2, 0)", 0),
        ("f32[40]", "i64[40]=-1", 2),
    ],
}
FAULTS = {
    "no end": ("tl.where(target < 0, at, classes)", "classes"),
    "targets are rivals": ("(cols < classes) & (times_listed == 0)", "cols < classes"),
}
