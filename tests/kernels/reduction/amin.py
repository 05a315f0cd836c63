"""Of all, of rows, of columns; NaN."""

OPINFO = 4
CASES = {
    "aten::amin": [
        ("f32[70000]",),
        ("f32[33,3000]", [1]),
        ("bf16[3000,33]", [0], True),
        ("i8[4,5,6]", [0, 2]),
        ("f32(nan, 1, -inf, inf)", [0]),
    ],
}
FAULTS = {
    "no NaN": ("propagate_nan=tl.PropagateNan.ALL", "propagate_nan=tl.PropagateNan.NONE"),
}
