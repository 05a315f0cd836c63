"""Sizes."""

OPINFO = 4
CASES = {
    "aten::eye": [(70,), (5, {"dtype": "torch.bool"})],
    "aten::eye.m": [(33, 70), (7, 0), (9, 4, {"dtype": "torch.int64"})],
}
