"""Orders, dimensions, layouts; norms on both sides of the bound."""

CASES = {
    "aten::renorm": [
        ("f32[33,7]", 2, 0, 2.5),
        ("f32[4,5,6]{30,1,5}", 1, -1, 3),
        ("bf16[20,30]", 2, 1, 4.0),
        ("f64[9,5]", 3.5, 0, 1.5),
        ("f32[9,5]", float("inf"), 0, 1.5),
        ("f16[9,5]", 0.5, 1, 0),
        ("f32[9,0]", 2, 0, 1),
    ],
}
FAULTS = {"all are shortened": ("tl.where(norm > most, x * divide", "tl.where(norm == norm, x * divide")}
