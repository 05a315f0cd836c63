"""aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor

grad - exp(output) * sum(grad).
"""

import triton
import triton.language as tl
from blocks.rows import input_gradient_dtype, map_rows

OVERLOADS = ("aten::_log_softmax_backward_data",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def gradient(grad, y):
    return grad


@triton.jit
def log_softmax_backward(grad, y, total):
    return grad - tl.exp(y) * total


def wrapper(grad_output, output, dim, input_dtype):
    inputs, dtype = [grad_output, output], input_gradient_dtype(grad_output, input_dtype)
    return map_rows(log_softmax_backward, inputs, dim, kind="sum", map=gradient, dtype=dtype, longest=4096)
