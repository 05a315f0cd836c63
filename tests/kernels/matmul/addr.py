"""Matrices, rows and columns added; alpha and beta; promotion."""

OPINFO = 4
CASES = {
    "aten::addr": [
        ("f32[33,70]", "f32[33]", "f32[70]"),
        ("bf16[70]", "bf16[33]", "bf16[70]", {"alpha": 0.5}),
        ("f32[33,70]{1,33}", "f32[33]", "f32[70]{2}", {"beta": 0.3, "alpha": 2}),
        ("i8[4,1]", "i8[4]", "i8[30]", {"beta": 3}),
        ("f32(nan, nan, nan)", "f32[5]", "f32[3]", {"beta": 0, "alpha": 2}),
        ("bool[3,2]", "bool[3]", "bool[2]"),
        ("f32[3,4]", "i32[3]", "f64[4]"),
    ],
}
REFUSED = {
    "aten::addr": [("i8[2,2]", "i8[2]", "i8[2]", {"alpha": 300})],
}
