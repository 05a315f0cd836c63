"""Slices that differ at the beginning and at the end, short and long ones; equal ones keep their order."""

OPINFO = 4
CASES = {
    "aten::unique_dim": [
        ("i64[300,2]<5", 0, True, True, True),
        ("i8[2,3,150]<2", -1, True, True, True),
        ("f32[3,40]{1,3}", 1, True, True, True),
        ("bool[70,4]", 0, True, True, True),
        ("f64[5,4,1]=2", 1, True, True, True),
        ("f16[130]", 0, True, True, True),
        ("bf16[0,3]", 0, True, True, True),
    ],
}
FAULTS = {"larger first": ("(sign > 0)", "(sign < 0)")}
REFUSED = {"aten::unique_dim": [("f32[3,0]", 0)]}
