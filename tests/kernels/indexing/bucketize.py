"""Sides."""

OPINFO = 4
CASES = {
    "aten::bucketize.Tensor": [
        ("f32[33,70]{1,33}", "f32(-1, -0.5, 0, 0.125, 0.25, 1, inf)"),
        ("i64[33]", "i64(-3, 0, 1, 2)", {"right": True, "out_int32": True}),
        ("f32(nan, 0, inf)", "f32(0, 1, inf)"),
        ("f32[3]", "f32[0]"),
    ],
}
FAULTS = {"right is left": ("~(element > x) if RIGHT", "~(element >= x) if RIGHT")}
