"""Layouts, bools."""

CASES = {
    "aten::bitwise_not": [
        ("i64[33,70]{1,33}",),
        ("bool[40,9]",),
        ("u8[7,5]",),
    ],
}
