"""Bins of several widths; weights, densities, what lies outside, none."""

OPINFO = 4
CASES = {
    "aten::_histogramdd_from_bin_tensors": [
        ("f32[20,2]{1,20}", ["f32(-1, 0, 0.5)", "f32(-2, -0.5, 1, 2)"]),
        ("f64[2,10,1]", ["f64(-1, 0, 0.5)"], {"weight": "f64[2,10]{1,2}", "density": True}),
        ("f32[9,2]=3", ["f32(1, 3)", "f32(2, 3, 4)"]),
        ("f32[0,2]", ["f32(1, 3)", "f32(2, 3, 4)"]),
        ("f32[40,2]", ["f32(-2, 0, 2)", "f32(-1, 1, 2)"], {"density": True}),
    ]
}
FAULTS = {"no upper edge": ("(x <= last)", "(x < last)"), "no width": ("x / (high - low)", "x")}
REFUSED = {
    "aten::_histogramdd_from_bin_tensors": [
        ("f32[9,2]", ["f32[3]"]),
        ("f32[9,2]", ["f32(1)", "f32(0, 1)"]),
        ("f32[9,1]", ["f64(0, 1)"]),
        ("f32[9,1]", ["f32[2,2]"]),
    ]
}
