"""Targets joined and side by side, lengths as lists and tensors; repeated labels, no labels, no steps, no way."""

OPINFO = 1
CASES = {
    "aten::_ctc_loss": [
        ("f32[7,3,5]", "i64[3,4]<5", [7, 4, 0], [3, 2, 0]),
        ("f64[7,3,5]{1,35,7}", "i64(1,1,2,2,2,3)", [7, 6, 2], [2, 4, 0], 4),
        ("f32[4,2,5]", "i32(1,1,1,2,3)", [4, 3], [3, 2], 0, True),
        ("f32[3,70,4]", "i64[70,1]<3", [3] * 70, [1] * 69 + [0], 3),
        ("f64[2,1,4]", "i64[1,520]<4", [2], [520], 3),
        ("f32[3,2,4]", "i64[2,1025]<4", [3, 2], [1025, 2], 3),
        ("f32[80,2,5]", "i64[2,32]<4", [80, 77], [32, 20], 4),
        ("f32[4,1,5]=inf", "i64(1,2)", [4], [2]),
    ],
    "aten::_ctc_loss.Tensor": [
        ("f32[7,3,5]", "i64[3,4]{1,3}<5", "i64(7,4,3)", "i32(3,2,4)"),
        ("f64[7,3,5]", "i64(1,2,2,2,3)", "i64[3]=6", "i64(2,3,0)"),
    ],
}
FAULTS = {
    "over equal labels": ("state - 2, has_previous, blank", "state - 1, has_previous, blank"),
    "over equal labels of many": ("s - 2, has_two_before, blank", "s - 1, has_two_before, blank"),
    "nothing waits": ("tl.debug_barrier()", "pass"),
    "begins anywhere": ("is_reachable = (k == 0)", "is_reachable = (k < 2)"),
    "no blank behind the last": ("(labels == LANES) & (first + i > 0)", "(labels > LANES) & (first + i > 0)"),
    "one end": ("log_sum_two(last_blank, last_label)", "log_sum_two(last_blank, last_blank)"),
}
REFUSED = {
    "aten::_ctc_loss.Tensor": [
        ("f32[7,3,5]", "i64[3,4]<5", "i64(7,8,1)", "i64(3,2,0)"),
        ("f32[7,3,5]", "i64[3,4]<5", "i64(7,-1,1)", "i64(3,2,0)"),
        ("f32[7,3,5]", "i64[6]<5", "i64(7,7,1)", "i64(3,2,0)"),
        ("f32[7,3,5]", "i64[3,4]<5", "i64(7,7)", "i64(3,2)"),
        ("f32[7,3,5]", "i64[3,4]<5", "f32(7,7,1)", "i64(3,2,0)"),
    ],
}
