"""aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor

Computes (grad - sum(grad * output)) * output.
"""

import torch
import triton
from blocks.rows import map_rows
from blocks.types import identical_dtypes

OVERLOADS = ("aten::_softmax_backward_data",)
DTYPES = ("bfloat16", "float16", "float32", "float64")

WHOLE_ROW = 4096  # longest row that is held whole; two inputs share the registers, so half of the default of map_rows


@triton.jit
def weighted(grad, y):
    return grad * y


@triton.jit
def softmax_backward(grad, y, total):
    return (grad - total) * y


def wrapper(grad_output, output, dim, input_dtype):
    identical_dtypes(grad_output, output)
    inputs = [grad_output, output]
    converted = grad_output.dtype == torch.float32 and input_dtype == torch.float16  # by the forward pass
    if not converted and input_dtype != grad_output.dtype:
        raise RuntimeError(f"cannot convert a {grad_output.dtype} gradient to {input_dtype}")
    dtype = input_dtype if converted else grad_output.dtype
    return map_rows(softmax_backward, inputs, dim, kind="sum", map=weighted, dtype=dtype, longest=WHOLE_ROW)
