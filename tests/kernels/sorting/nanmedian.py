"""Rows and all elements, of an even number and an odd one; NaN; none."""

OPINFO = 4
CASES = {
    "aten::nanmedian": [
        ("f32[3,500]",),
        ("i64[70,9]{1,70}",),
        ("f32(1, nan, 3, 5)",),
        ("bf16[0]",),
        ("i32[0,3]",),
        ("bool[7,5]{1,7}",),
    ],
    "aten::nanmedian.dim": [
        ("bf16[30,41]", 1),
        ("i8[5,40,7]", 1, True),
        ("f64(nan, nan, 3, inf, -inf)", 0),
        ("f16(nan, nan)", -1),
        ("bool[5,6,3]", 1, True),
    ],
}
many = f"f32[{'1,' * 26}]"
REFUSED = {"aten::nanmedian": [(many,)], "aten::nanmedian.dim": [("f32[3,0]", 1), (many, 0)]}
