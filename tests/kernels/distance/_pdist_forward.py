"""Orders; few rows and no columns."""

CASES = {
    "aten::_pdist_forward": [
        ("f32[40,7]",),
        ("f32[5,33]", 1.0),
        ("f64[20,3]", 0.0),
        ("f32[4,20]", 3.5),
        ("f32[4,20]", float("inf")),
        ("f32[1,7]", 2.0),
        ("f32[5,7]", -1.5),
        ("f32[4,0]", 2.0),
    ],
}
FAULTS = {"pairs lie otherwise": ("high - low - 1", "high - low")}
