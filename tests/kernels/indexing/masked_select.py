"""Masks that broadcast."""

OPINFO = 4
CASES = {
    "aten::masked_select": [
        ("f32[33,70]", "bool[70]"),
        ("bf16[5,4]{1,5}", "bool[3,1,4]"),
        ("f32[3]", "bool[3]=0"),
        ("f32[0]", "bool[0]"),
    ],
}
REFUSED = {
    "aten::masked_select": [("f32[3]", "u8[3]")],
}
