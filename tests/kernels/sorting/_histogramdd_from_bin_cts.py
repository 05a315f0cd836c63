"""Points in one, two and three dimensions; weights, densities, what lies outside, equal points, none."""

OPINFO = 4
CASES = {
    "aten::_histogramdd_from_bin_cts": [
        ("f32[20,3]{1,20}", [2, 3, 5]),
        ("f64[2,10,3]", [2, 3, 4], {"range": [0.0, 1.0, -1.0, 2.0, 3.0, 3.0], "weight": "f64[2,10]{1,2}"}),
        ("f32[9,2]=3", [2, 3], {"density": True}),
        ("f32[700,1]", [2100]),
        ("f32[0,2]", [2, 2]),
        ("f64[700,2]u", [20, 30], {"weight": "f64[700]", "density": True}),
    ]
}
FAULTS = {
    "no upper edge": ("(x <= last)", "(x < last)"),
    "no weight": ("out_ptr + bin, w,", "out_ptr + bin, w * 0 + 1,"),
}
REFUSED = {
    "aten::_histogramdd_from_bin_cts": [
        ("f32[9,2]", [2, 0]),
        ("f32[9,2]", [2, 2], {"weight": "f32[8]"}),
        ("f32[9,2]", [2, 2, 2]),
    ]
}
