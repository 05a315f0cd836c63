"""Bins of one width and of several; weights, densities, what lies outside, equal elements, none."""

OPINFO = 4
CASES = {
    "aten::histogram.bin_ct": [
        ("f32[33,70]{1,33}", 7),
        ("f64[1500]", 30, {"range": [-1.0, 0.7], "weight": "f64[1500]", "density": True}),
        ("f32(0, 1, 2, 3, -1, nan, 2.5, inf, -0.)", 3, {"range": [0.0, 3.0]}),
        ("f32[2,30]=3", 5, {"weight": "f32[60]u"}),
        ("f64[0]", 5),
    ],
    "aten::histogram.bins_tensor": [
        ("f32[33,70]", "f32(-1, -0.5, 0.5, 2)", {"weight": "f32[70,33]{1,70}", "density": True}),
        ("f64(0, 1, 2, 3, -1, nan, 2.5, inf, -0.)", "f64(0, 1, 2.5)"),
    ],
}
FAULTS = {"no upper edge": ("(x <= tl.load", "(x < tl.load")}
REFUSED = {
    "aten::histogram.bin_ct": [("f32[9]", 0), ("f32[9]", 5, {"weight": "f32[8]"})],
    "aten::histogram.bins_tensor": [("f32[9]", "f32[1]"), ("f32[9]", "f32[2,2]"), ("f32[9]", "f64(1, 2)")],
}
