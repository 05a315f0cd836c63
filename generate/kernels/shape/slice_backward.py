"""aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) ->
    Tensor

The gradient where the slice was taken, and zeros elsewhere.
"""

import torch
from blocks.regions import sliced

OVERLOADS = ("aten::slice_backward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(grad_output, input_sizes, dim, start, end, step):
    out = torch.empty(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    return sliced(grad_output, out, dim, start, end, step)
