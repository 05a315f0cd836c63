"""Ends and types."""

OPINFO = 4
CASES = {
    "aten::linspace": [
        (-3, 10, 70),
        (0.9, 10, 5, {"dtype": "torch.int64"}),
        (3, 9, 1),
        (float("inf"), -3, 1, {"dtype": "torch.bfloat16"}),
        (3, 9, 0, {"dtype": "torch.float64"}),
        (1, 0, 5000, {"dtype": "torch.bfloat16"}),
    ],
    "aten::linspace.Tensor_Tensor": [("f32[]=-3", "f32[]=4", 70)],
    "aten::linspace.Tensor_Scalar": [("f64[]=2", 5, 7)],
    "aten::linspace.Scalar_Tensor": [(1.5, "i64[]=9", 7, {"dtype": "torch.int32"})],
}
FAULTS = {"one step too many": ("max(steps - 1, 1)", "max(steps, 1)")}
