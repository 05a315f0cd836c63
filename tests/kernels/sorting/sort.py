"""Rows of a tile, of less, of more, in several parts; equal elements, NaN, both zeros."""

OPINFO = 6
CASES = {
    "aten::sort": [
        ("f32[2,1300]", 1),
        ("i64[70,40]{1,70}", 0, True),
        ("f32(1, nan, 3, -0., 0, nan, inf, -inf)", 0, True),
        ("f64(1, nan, 3, 0, -0., nan, inf, -inf)",),
        ("f32[70000]",),
    ],
    "aten::sort.stable": [
        ("bf16[2,300,33]", {"stable": True, "dim": 1}),
        ("i8[2,1100]", {"stable": True, "descending": True}),
        ("f32(0, -0., 0, nan, -0., nan)", {"stable": True, "dim": 0}),
        ("bool[9,300]", {"stable": True}),
        ("f16[4500]", {"stable": True, "descending": True}),
    ],
}
FAULTS = {
    "not stable": ("other_cols[None, :] < cols[:, None]", "other_cols[None, :] > cols[:, None]"),
    "signs left out": ("plain(8 if last and signed else 0)", "plain(0)"),
    "starts of many parts behind their own elements": ("+ tl.cumsum(count, 0) - count", "+ tl.cumsum(count, 0)"),
    "places cut to 31 bits": ("(x.to(tl.int64) << 32) | item", "(x.to(tl.int64) << 31) | item"),
    "second of a pair before the first": ("below + lower, above + upper", "below, above"),
    "parts unordered": ("(other < block)[None, :], count", "(other > block)[None, :], count"),
}
