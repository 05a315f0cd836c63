"""Tiles that are not full, transposed operands, an empty sum."""

OPINFO = 4
CASES = {
    "aten::mm": [
        ("f32[33,70]", "f32[70,20]"),
        ("bf16[40,130]", "bf16[130,33]"),
        ("f16[64,64]{1,64}", "f16[64,64]"),
        ("f32[5,7]{1,5}", "f32[7,3]{1,7}"),
        ("f32[3,0]", "f32[0,4]"),
        ("f32[1,300]", "f32[300,1]"),
        ("c64[33,20]{1,33}", "c64[20,5]"),
    ],
}
FAULTS = {
    "one row short": ("(rows < M)[:, None]", "(rows < M - 1)[:, None]"),
    "loses the rest": ("a_rest, b_rest = a - a_high, b - b_high", "a_rest, b_rest = a * 0, b * 0"),
}
REFUSED = {
    "aten::mm": [("bool[2,2]", "bool[2,2]")],
}
