"""aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor

(grad - sum(grad * output)) * output.
"""

import torch
import triton
from blocks.rows import map_rows

OVERLOADS = ("aten::_softmax_backward_data",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def weighted(grad, y):
    return grad * y


@triton.jit
def softmax_backward(grad, y, total):
    return (grad - total) * y


def wrapper(grad_output, output, dim, input_dtype):
    inputs = [grad_output, output]
    converted = grad_output.dtype == torch.float32 and input_dtype == torch.float16  # by the forward call
    dtype = input_dtype if converted else grad_output.dtype
    return map_rows(softmax_backward, inputs, dim, kind="sum", map=weighted, dtype=dtype, longest=4096)
