"""Rows, columns, long and few ones; alpha and beta."""

OPINFO = 4
CASES = {
    "aten::addmv": [
        ("f32[33]", "f32[33,3000]", "f32[3000]"),
        ("bf16[1]", "bf16[3000,33]{1,3000}", "bf16[33]", {"alpha": 0.5}),
        ("f32[]", "f32[2,40000]", "f32[40000]{2}", {"beta": 0.3, "alpha": 2}),
        ("i8[4]", "i8[4,300]", "i8[300]", {"beta": 3}),
        ("f32(nan, nan, nan)", "f32[3,5]", "f32[5]", {"beta": 0, "alpha": 2}),
        ("f64[3]", "f64[3,0]", "f64[0]", {"beta": 2}),
        ("f32[33]", "f32[33,70]=nan", "f32[70]", {"alpha": 0}),
    ],
}
FAULTS = {"times 0": ("alpha == 0", "False")}
REFUSED = {
    "aten::addmv": [("i8[2]", "i8[2,2]", "i8[2]", {"alpha": 300}), ("bool[2]", "bool[2,2]", "bool[2]")],
}
