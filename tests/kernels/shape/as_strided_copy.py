"""Strides."""

CASES = {"aten::as_strided_copy": [("f32[33,70]", [30, 40], [70, 1]), ("i64[20]", [5, 4], [2, 0])]}
