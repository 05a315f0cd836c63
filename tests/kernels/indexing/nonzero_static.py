"""Fewer rows and more."""

OPINFO = 4
CASES = {
    "aten::nonzero_static": [
        ("i64[33,70]", {"size": 40}),
        ("bool[5,4,30]{1,5,20}", {"size": 700, "fill_value": 7}),
    ],
}
