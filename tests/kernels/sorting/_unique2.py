"""More than a tile, equal ones, NaN, both zeros, none, no dimension."""

OPINFO = 4
CASES = {
    "aten::_unique2": [
        ("i64[33,70]{1,33}<40", True, True, True),
        ("f32[1200]", True, True, True),
        ("f32(3, nan, 1, nan, -0., 0, 3, inf, -inf)", False, True, True),
        ("bool[300]", True, False, True),
        ("bf16[0,3]", True, True, True),
        ("f64[]", True, True, True),
    ],
}
