"""Dimensions, more of them, none of an element."""

OPINFO = 4
CASES = {
    "aten::repeat": [
        ("f32[33,70]", [2, 3]),
        ("f32[4,3]{1,4}", [2, 1, 3]),
        ("i64[]", [4]),
        ("f32[4]", [0]),
    ],
}
