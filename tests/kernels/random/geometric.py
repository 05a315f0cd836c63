"""Probabilities, types and layouts."""

CASES = {
    "aten::geometric": [
        ("f32[33,250]", 0.3),
        ("i64[250,33]{1,250}", 0.001),
        ("bf16[33,250]", 0.9),
        ("f16[33,250]", 0.01),
        ("u8[33,250]", 0.5),
        ("f64[33,250]", 0.05),
    ],
}

FAULTS = {
    "failures": ("tl.maximum(tl.ceil(tl.log(u) / log1p_fp64(-p)), 1.0)", "tl.floor(tl.log(u) / log1p_fp64(-p))"),
    "one more": ("tl.ceil(", "1.0 + tl.ceil("),
    "p for 1 - p": ("log1p_fp64(-p)", "tl.log(p)"),
    "a little more": ("log1p_fp64(-p)", "0.9 * log1p_fp64(-p)"),
}
