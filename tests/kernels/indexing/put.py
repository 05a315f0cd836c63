"""Indices of several dimensions."""

OPINFO = 4
CASES = {
    "aten::put": [
        ("f32[33,70]", "i64(5, 9, 2309, -1000)", "f32[2,2]"),
        ("f32[33,7]{1,33}", "i64[2,9]<231", "f32[2,9]", True),
        ("i8[4]", "i64[9]<4", "i8[9]", True),
    ],
}
REFUSED = {"aten::put": [("f32[4,3]", "i64[3]<4", "f32[2]")]}
