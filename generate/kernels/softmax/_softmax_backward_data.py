"""aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor

(grad - sum(grad * output)) * output.
"""

import triton
from blocks.rows import input_gradient_dtype, map_rows

OVERLOADS = ("aten::_softmax_backward_data",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def weighted(grad, y):
    return grad * y


@triton.jit
def softmax_backward(grad, y, total):
    return (grad - total) * y


def wrapper(grad_output, output, dim, input_dtype):
    inputs, dtype = [grad_output, output], input_gradient_dtype(grad_output, input_dtype)
    return map_rows(softmax_backward, inputs, dim, kind="sum", map=weighted, dtype=dtype, longest=4096)
