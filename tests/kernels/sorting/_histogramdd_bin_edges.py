"""Ranges that are given and those of the points, equal ends, no points, no bins."""

OPINFO = 4
CASES = {
    "aten::_histogramdd_bin_edges": [
        ("f32[20,3]{1,20}", [2, 3, 5]),
        ("f64[2,10,3]", [2, 3, 4], {"range": [0.0, 1.0, -1.0, 2.0, 3.0, 3.0]}),
        ("f32[9,2]=3", [2, 0]),
        ("f32[0,2]", [2, 2]),
        ("f32[9,0]", []),
    ]
}
FAULTS = {"one width": ("0.5, 0.0)", "0.0, 0.0)")}
REFUSED = {
    "aten::_histogramdd_bin_edges": [("f32[9]", [2]), ("f32[9,2]", [2]), ("f32[9,2]", [2, 2], {"range": [0.0, 1.0]})]
}
