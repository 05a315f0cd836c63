"""Dimensions, layouts, broadcasting, types."""

CASES = {
    "aten::linalg_cross": [
        ("f32[33,3]", "f32[33,3]"),
        ("f32[4,3,50]{3,1,12}", "f32[1,3,50]", {"dim": 1}),
        ("bf16[3,9]", "bf16[3,9]{1,3}", {"dim": -2}),
        ("f64[2,3,7]", "f64[2,3,1]", {"dim": 1}),
        ("i8[40,3]", "i8[40,3]"),
        ("f16[3]", "f16[3]"),
    ],
}
FAULTS = {"sign": ("c * x - a * z", "a * z - c * x")}
