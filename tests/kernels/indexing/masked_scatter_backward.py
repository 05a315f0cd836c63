"""Masks that broadcast."""

CASES = {
    "aten::masked_scatter_backward": [
        ("f32[33,70]", "bool[70]", [70, 33]),
        ("bf16[5,4]{1,5}", "bool[5,4]", [20]),
        ("f32[3]", "bool[3]=0", [2, 2]),
    ],
}
REFUSED = {
    "aten::masked_scatter_backward": [("f32[3]", "u8[3]", [3])],
}
