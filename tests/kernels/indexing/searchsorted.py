"""Sides, rows, sorters."""

OPINFO = 4
CASES = {
    "aten::searchsorted.Tensor": [
        ("f32(-1, -0.5, 0, 0, 0.25, 1, inf)", "f32[33,70]{1,33}"),
        ("i64(-3, 0, 0, 2)", "i64[33]", {"side": "right", "out_int32": True}),
        ("i64(5, -3, 2, 0)", "i64[9]", {"sorter": "i64(1, 3, 2, 0)"}),
    ],
    "aten::searchsorted.Scalar": [("f32(-1, 0, 0, 2)", 0), ("i64(-1, 0, 0, 2)", 1.5, {"right": True})],
}
