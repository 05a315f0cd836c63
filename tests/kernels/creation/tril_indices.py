"""Rows of none, growing rows and whole ones; offsets past either end."""

OPINFO = 4
CASES = {
    "aten::tril_indices": [
        (70, 33),
        (33, 70, -5, {"dtype": "torch.int32"}),
        (50, 20, 7),
        (5, 9, 20),
        (5, 9, -5),
        (300, 1, -17),
        (0, 4),
        (4, 0, 1),
    ],
}
FAULTS = {
    "another root": ("8 * i.to", "9 * i.to"),
    "no rows of none": ("above + row, tl.where", "row, tl.where"),
}
