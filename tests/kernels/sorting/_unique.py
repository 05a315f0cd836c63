"""More than a tile, equal ones, NaN, both zeros, none, no dimension."""

OPINFO = 4
CASES = {
    "aten::_unique": [
        ("i64[33,70]{1,33}<40", True, True),
        ("f32[1200]", True, True),
        ("f32(3, nan, 1, nan, -0., 0, 3, inf, -inf)", False, True),
        ("bool[300]", True, False),
        ("bf16[0,3]", True, True),
        ("f64[]", True, True),
    ],
}
