"""Targets joined and side by side, lengths as lists and tensors; repeated labels, no labels, no steps, no way."""

OPINFO = 1
FORWARD = {
    "aten::_ctc_loss_backward": ("aten::_ctc_loss", {"neg_log_likelihood": 0, "log_alpha": 1}, {}),
    "aten::_ctc_loss_backward.Tensor": ("aten::_ctc_loss.Tensor", {"neg_log_likelihood": 0, "log_alpha": 1}, {}),
}
CASES = {
    "aten::_ctc_loss_backward": [
        ("f32[3]", "f32[7,3,5]", "i64[3,4]<5", [7, 4, 0], [3, 2, 0], 0),
        ("f64[3]{2}", "f64[7,3,5]{1,35,7}", "i64(1,1,2,2,2,3)", [7, 6, 2], [2, 4, 0], 4),
        ("f32[2]{0}", "f32[4,2,5]", "i32(1,1,1,2,3)", [4, 3], [3, 2], 0, True),
        ("f32[70]", "f32[3,70,4]", "i64[70,1]<3", [3] * 70, [1] * 69 + [0], 3),
        ("f64[1]", "f64[2,1,4]", "i64[1,520]<4", [2], [520], 3),
        ("f32[2]", "f32[3,2,4]", "i64[2,1025]<3", [3, 3], [1025, 2], 3),
        ("f32[2]", "f32[40,2,300]", "i64[2,32]<299", [40, 37], [32, 20], 299),
    ],
    "aten::_ctc_loss_backward.Tensor": [
        ("f32[3]", "f32[7,3,5]", "i64[3,4]{1,3}<5", "i64(7,4,3)", "i32(3,2,4)", 0),
        ("f64[3]", "f64[7,3,5]", "i64(1,2,2,2,3)", "i64[3]=6", "i64(2,3,0)", 1, True),
    ],
}
FAULTS = {
    "over equal labels": ("state + 2, has_next, blank", "state + 1, has_next, blank"),
    "over equal labels of many": ("s + 2, has_two_after, blank", "s + 1, has_two_after, blank"),
    "steps after the last": ("inside = (t < steps) & (c < C)", "inside = (t < T) & (c < C)"),
    "both of the last states": ("& ~final_blank[None, :]", "& (t >= 0)"),
}
