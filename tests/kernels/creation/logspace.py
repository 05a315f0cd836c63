"""Ends, bases and types."""

OPINFO = 4
CASES = {
    "aten::logspace": [
        (-3, 5, 70),
        (0, 4, 5, {"dtype": "torch.int64"}),
        (3, 9, 1),
        (-2, 3, 6, -2.0, {"dtype": "torch.float64"}),
        (0, 1, 5000, 2.0, {"dtype": "torch.bfloat16"}),
    ],
}
