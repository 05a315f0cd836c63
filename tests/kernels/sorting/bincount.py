"""Few bins and many, in one copy and in several; weights of each kind; none to count."""

OPINFO = 4
CASES = {
    "aten::bincount": [
        ("i64[1500]<70",),
        ("u8[1100000]<200",),
        ("i32[3000]<5000", None, 6000),
        ("u8[300]{2}<200",),
        ("i64[1500]<7", "f32[1500]{3}"),
        ("i16[1500]<7", "bf16[1500]", 20),
        ("i64[1500]{2}<3000", "i64[1500]"),
        ("i8(3, 0, 0, 5)", "bool(1, 0, 1, 1)"),
        ("u8[140000]<200", "f32[140000]"),
        ("i32[140000]<3000",),
        ("i64[0]", "f32[0]", 5),
        ("i64[0]",),
    ],
}
FAULTS = {
    "a bin less": ("(bin_index < bins)", "(bin_index < bins - 1)"),
    "every number once": ("mask=(k < bins) & (counts > 0)", "mask=(k < bins) & (counts == 1)"),
}
REFUSED = {"aten::bincount": [("i64[4]<3", "f32[3]"), ("i64(2, -1, 0)",), ("i64[2,2]<3",)]}
