"""Windows that overlap, and that do not."""

OPINFO = 4
CASES = {"aten::unfold_copy": [("f32[33,70]", 1, 5, 2), ("i64[9,4]", 0, 2, 3)]}
