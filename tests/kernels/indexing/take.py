"""Indices of several dimensions."""

OPINFO = 4
CASES = {
    "aten::take": [
        ("f32[33,70]", "i64[5,9]<2310"),
        ("f32[33,7]{1,33}", "i64(-1, 0, 40)"),
        ("i8[]", "i64[]<1"),
    ],
}
FAULTS = {"negative indices": ("tl.where(index < 0, index + size, index)", "index")}
