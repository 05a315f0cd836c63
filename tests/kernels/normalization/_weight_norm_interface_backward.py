"""Along either end, vectors, long rows; any norms, not those of v alone."""

CASES = {
    "aten::_weight_norm_interface_backward": [
        ("f32[6,3,5]", "f32[6,3,5]", "f32[6,1,1]", "f32[6,1,1]", 0),
        ("f32[6,3,5]", "f32[6,3,5]", "f32[1,1,5]", "f32[1,1,5]", 2),
        ("bf16[4,7]", "bf16[4,7]", "bf16[4,1]", "f32[4,1]", 0),
        ("f64[9]", "f64[9]", "f64[9]", "f64[9]", 0),
        ("f32[3,5000]", "f32[3,5000]", "f32[3,1]", "f32[3,1]", 0),
    ],
}
FAULTS = {"the direction is forgotten": ("grad - divide(v, norm) * ", "grad - ")}
