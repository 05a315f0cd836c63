"""Long ones, strided ones, none."""

OPINFO = 4
CASES = {
    "aten::dot": [
        ("f32[70000]", "f32[70000]"),
        ("bf16[300]{2}", "bf16[300]"),
        ("i8[300]", "i8[300]{0}"),
        ("f64[0]", "f64[0]"),
    ],
}
REFUSED = {
    "aten::dot": [("bool[2]", "bool[2]")],
}
