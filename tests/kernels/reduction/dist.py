"""Orders; broadcast and promoted operands."""

OPINFO = 4
CASES = {
    "aten::dist": [
        ("f32[33,700]", "f32[33,700]"),
        ("f32[70000]", "f32[70000]", 3),
        ("bf16[4,5,6]", "bf16[6]", 1),
        ("f32[40,50]{1,40}", "f64[40,50]", 2.5),
        ("f32[33,70]", "f32[33,70]", float("inf")),
        ("f32[33,70]", "f32[33,1]", 0),
    ],
}
REFUSED = {
    "aten::dist": [("f32[0]", "f32[0]", float("inf"))],
}
