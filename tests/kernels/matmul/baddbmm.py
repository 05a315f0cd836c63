"""Batches; a matrix, a row or a batch added; alpha and beta."""

OPINFO = 4
CASES = {
    "aten::baddbmm": [
        ("f32[3,33,20]", "f32[3,33,70]", "f32[3,70,20]"),
        ("bf16[33]", "bf16[2,40,130]", "bf16[2,130,33]", {"alpha": 0.5}),
        ("f32[2,1,3]", "f32[2,5,7]{35,1,5}", "f32[2,7,3]{21,1,7}", {"beta": 0.3, "alpha": 2}),
        ("i8[4,5]", "i8[3,4,6]", "i8[3,6,5]", {"beta": 3}),
        ("f32[3]=1", "f32[2,5,0]", "f32[2,0,3]"),
        ("f32(nan, nan, nan)", "f32[2,5,7]", "f32[2,7,3]", {"beta": 0}),
        ("f32[33]", "f32[2,40,130]=nan", "f32[2,130,33]", {"alpha": 0}),
    ],
}
FAULTS = {
    "times 0": ("alpha == 0", "False"),
    "the first matrix": ("bias_ptr += batch * bias_stride[0]", "bias_ptr += 0"),
}
REFUSED = {
    "aten::baddbmm": [
        ("bool[1,2,2]", "bool[1,2,2]", "bool[1,2,2]"),
        ("i8[1,2,2]", "i8[1,2,2]", "i8[1,2,2]", {"alpha": 300}),
    ],
}
