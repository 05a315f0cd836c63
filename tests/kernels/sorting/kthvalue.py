"""Rows, columns, NaN, no dimension."""

OPINFO = 4
CASES = {
    "aten::kthvalue": [
        ("f32[3,1000]", 400),
        ("i64[70,40]{1,70}", 7, 0, True),
        ("f32(1, nan, 3, -0., 0, nan, inf, -inf)", 7),
        ("f64[]", 1),
    ],
}
FAULTS = {"the next": ("k - 1)", "k)")}
REFUSED = {"aten::kthvalue": [(f"f32[{'1,' * 26}]", 1)]}
