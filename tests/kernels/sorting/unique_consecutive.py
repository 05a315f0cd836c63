"""Elements and slices; NaN, none, no dimension."""

OPINFO = 4
CASES = {
    "aten::unique_consecutive": [
        ("i64[33,70]{1,33}<2", True, True),
        ("i8[1200]<2", False, True),
        ("f32(3, 3, nan, nan, -0., 0, 3, inf, inf)", True, True),
        ("bool[300,2]", True, True, 0),
        ("i16[2,3,200]<2", True, True, 2),
        ("bf16[0,3]", True, True, 0),
        ("f64[]", True, True),
        ("u8(1, 1, 0)", False, True, 0),
        ("u8(1, 1, 0)", False, False, -1),
    ],
}
REFUSED = {"aten::unique_consecutive": [("f32[3,0]", False, False, 0)]}
