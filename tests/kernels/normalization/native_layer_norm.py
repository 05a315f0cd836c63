"""Rows of several lengths, with and without weights."""

OPINFO = 4
CASES = {
    "aten::native_layer_norm": [
        ("f32[33,70]", [70], "f32[70]", "f32[70]", 1e-05),
        ("bf16[4,5,130]", [5, 130], None, None, 1e-05),
        ("f16[9,33]", [33], "f16[33]", None, 0.001),
        ("f32[5,3000]", [3000], "f32[3000]", "f32[3000]", 1e-05),
    ],
}
FAULTS = {
    "no eps": ("/ n + eps", "/ n"),
    "padding counts": ("tl.where(mask, x - mean[:, None], 0)", "x - mean[:, None]"),
    "unbiased": ("tl.sum(centered * centered, 1) / n", "tl.sum(centered * centered, 1) / (n - 1)"),
}
