"""aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor"""

from blocks.leaky import leaky_backward

OVERLOADS = ("aten::leaky_relu_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, self, negative_slope, self_is_result, *, out=None):
    return leaky_backward(grad_output, self, negative_slope, self_is_result, out)
