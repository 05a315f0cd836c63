"""Batches; a matrix or a row added; alpha and beta; many parts."""

OPINFO = 4
CASES = {
    "aten::addbmm": [
        ("f32[33,20]", "f32[3,33,70]", "f32[3,70,20]"),
        ("bf16[33]", "bf16[2,40,130]", "bf16[2,130,33]", {"alpha": 0.5}),
        ("f32[1,3]", "f32[2,5,7]{35,1,5}", "f32[2,7,3]{21,1,7}", {"beta": 0.3, "alpha": 2}),
        ("i8[4,5]", "i8[3,4,6]", "i8[3,6,5]", {"beta": 3}),
        ("f32[5,3]=1", "f32[0,5,2]", "f32[0,2,3]"),
        ("f32[20]", "f32[40,9,20]", "f32[40,20,20]", {"beta": 2, "alpha": 0.5}),
        ("f32(nan, nan, nan)", "f32[2,5,7]", "f32[2,7,3]", {"beta": 0}),
        ("f32[5,3]", "f32[2,5,7]", "f32[2,7,3]=nan", {"alpha": 0, "beta": 0.5}),
    ],
}
FAULTS = {
    "times 0": ("alpha == 0", "False"),
    "no alpha": ("acc *= number_value(numbers[1], acc.dtype)", "acc *= 1"),
    "the first matrix": ("a_ptr + batch * a_stride[0]", "a_ptr"),
}
REFUSED = {
    "aten::addbmm": [("bool[2,2]", "bool[1,2,2]", "bool[1,2,2]"), ("i8[2,2]", "i8[1,2,2]", "i8[1,2,2]", {"beta": 300})],
}
