"""Sizes."""

OPINFO = 4
CASES = {"aten::split_with_sizes_copy": [("f32[33,70]", [32, 0, 38], 1), ("i64[6,5]{1,6}", [2, 4])]}
FAULTS = {
    "one column short": ("(column < width)", "(column < width - 1)"),
}
