"""Masks that broadcast."""

OPINFO = 4
CASES = {
    "aten::masked_scatter": [
        ("f32[33,70]", "bool[70]", "f32[70,33]{1,70}"),
        ("bf16[5,4]{1,5}", "bool[3,1,4]", "bf16[100]"),
        ("f32[3]", "bool[3]=0", "f32[0]"),
    ],
}
REFUSED = {"aten::masked_scatter": [("f32[4]", "u8[4]", "f32[4]")]}
