"""Whole rows, shrinking ones and none; offsets past either end."""

OPINFO = 4
CASES = {
    "aten::triu_indices": [
        (70, 33),
        (33, 70, -5, {"dtype": "torch.int32"}),
        (50, 20, 7),
        (5, 9, 20),
        (5, 9, -5),
        (1, 300, 17),
        (0, 4),
        (4, 0, 1),
    ],
}
FAULTS = {
    "another root": ("8 * rest.to", "9 * rest.to"),
    "no whole rows": ("i // columns, whole + row)", "i // columns, row)"),
}
