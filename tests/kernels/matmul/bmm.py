"""Batches."""

OPINFO = 4
CASES = {
    "aten::bmm": [
        ("f32[3,33,70]", "f32[3,70,20]"),
        ("bf16[2,40,130]", "bf16[2,130,33]"),
        ("f32[2,5,7]{35,1,5}", "f32[2,7,3]{21,1,7}"),
        ("c64[2,5,7]{35,1,5}", "c64[2,7,3]"),
        ("f32[0,5,7]", "f32[0,7,3]"),
    ],
}
FAULTS = {
    "one real product": ("real_bmm(b, d)", "real_bmm(a, d)"),
    "the first batch": ("batch = (tl.program_id(0) // (down * across))", "batch = (tl.program_id(0) * 0)"),
}
REFUSED = {
    "aten::bmm": [("bool[1,2,2]", "bool[1,2,2]")],
}
