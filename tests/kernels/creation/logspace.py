"""Ends, bases and types."""

OPINFO = 4
CASES = {
    "aten::logspace": [
        (-3, 5, 70),
        (0, 4, 5, {"dtype": "torch.int64"}),
        (3, 9, 1),
        (-2, 3, 6, -2.0, {"dtype": "torch.float64"}),
        (0, 1, 5000, 2.0, {"dtype": "torch.bfloat16"}),
        (2, float("inf"), 1),
    ],
    "aten::logspace.Tensor_Tensor": [("f32[]=-3", "f32[]=4", 70)],
    "aten::logspace.Tensor_Scalar": [("f64[]=2", 5, 7, 2.0)],
    "aten::logspace.Scalar_Tensor": [(1.5, "i64[]=9", 7, 2.0, {"dtype": "torch.int32"})],
}
