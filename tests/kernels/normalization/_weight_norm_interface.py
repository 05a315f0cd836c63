"""Along the first dimension and the last, vectors, long rows."""

CASES = {
    "aten::_weight_norm_interface": [
        ("f32[6,3,5]", "f32[6,1,1]", 0),
        ("f32[6,3,5]", "f32[1,1,5]", 2),
        ("bf16[4,7]", "bf16[4,1]", 0),
        ("f16[4,7]", "f16[1,7]", 1),
        ("f64[9]", "f64[9]", 0),
        ("f32[3,5000]", "f32[3,1]", 0),
    ],
}
FAULTS = {"the size is forgotten": ("v * divide(g, norm)", "divide(v, norm)")}
