"""OpInfo's samples, ranges and types."""

OPINFO = 2
CASES = {
    "aten::randint": [
        (6, [33, 250]),
        (3000, [33, 250], {"dtype": "torch.float16"}),
    ],
    "aten::randint.low": [
        (-(1 << 40), 1 << 50, [33, 250]),
        (0, 2, [33, 250], {"dtype": "torch.bool"}),
    ],
    "aten::randint.generator": [
        (100, [33, 250], {"generator": None}),
    ],
    "aten::randint.low_generator": [
        (-5, 100, [33, 250], {"generator": None, "dtype": "torch.int8"}),
    ],
}

FAULTS = {
    "a bit less": ("count == 0", "count == 6"),
    "32 bits of a count": ("above, below = count >> 32,", "above, below = count >> 63,"),
}
