"""Means and deviations in numbers and tensors."""

CASES = {
    "aten::normal.Tensor_Tensor": [
        ("f32[1,250]", "f32[33,250]u"),
    ],
    "aten::normal.Tensor_float": [
        ("f32[33,250]", 0.5),
    ],
    "aten::normal.float_Tensor": [
        (1.5, "f32[33,250]u"),
    ],
    "aten::normal.float_float": [
        (1.0, 0.5, [33, 250]),
    ],
}
