"""A row, a column or a matrix added; alpha and beta."""

OPINFO = 4
CASES = {
    "aten::addmm": [
        ("f32[20]", "f32[33,70]", "f32[70,20]"),
        ("f32[33,1]", "f32[33,70]", "f32[70,20]", {"beta": 0.5, "alpha": 2}),
        ("bf16[40,33]", "bf16[40,130]", "bf16[130,33]", {"alpha": 0.5}),
        ("f32(nan, nan, nan)", "f32[5,7]", "f32[7,3]", {"beta": 0}),
        ("f32[5,7]", "f32[5,4]=nan", "f32[4,7]", {"alpha": 0}),
        ("f64[40,33]", "f64[40,130]=nan", "f64[130,33]", {"alpha": 0, "beta": 2}),
    ],
}
FAULTS = {
    "times 0": ("alpha == 0", "False"),
    "no alpha": ("acc *= number_value(numbers[1], acc.dtype)", "acc *= 1"),
    "no beta": ("acc += number_value(numbers[0], acc.dtype) * bias", "acc += bias"),
}
REFUSED = {
    "aten::addmm": [("bool[2,2]", "bool[2,2]", "bool[2,2]"), ("i8[2,2]", "i8[2,2]", "i8[2,2]", {"alpha": 300})],
}
