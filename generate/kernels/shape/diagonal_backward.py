"""aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor"""

import torch
from blocks.creation import fill

OVERLOADS = ("aten::diagonal_backward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(grad_output, input_sizes, offset, dim1, dim2):
    out = fill(torch.empty(input_sizes, dtype=grad_output.dtype, device=grad_output.device), 0)
    fill(out.diagonal(offset, dim1, dim2), grad_output)
    return out
