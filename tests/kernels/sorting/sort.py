"""Rows of a tile, of less, of several that are merged; equal elements, NaN, both zeros."""

OPINFO = 6
CASES = {
    "aten::sort": [
        ("f32[2,1300]", 1),
        ("i64[70,40]{1,70}", 0, True),
        ("f32(1, nan, 3, -0., 0, nan, inf, -inf)", 0, True),
        ("f64(1, nan, 3, 0, -0., nan, inf, -inf)",),
    ],
    "aten::sort.stable": [
        ("bf16[2,300,33]", {"stable": True, "dim": 1}),
        ("i8[2,1100]", {"stable": True, "descending": True}),
        ("f32(0, -0., 0, nan, -0., nan)", {"stable": True, "dim": 0}),
        ("bool[9,300]", {"stable": True}),
        ("f16[2500]", {"stable": True, "descending": True}),
    ],
}
FAULTS = {
    "not stable": ("others[None, :] < cols[:, None]", "others[None, :] > cols[:, None]"),
    "runs unstable": ("(other == key) & (later == 1)", "(other == key) & (later == 0)"),
}
