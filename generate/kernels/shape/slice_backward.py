"""aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) ->
    Tensor

The result holds the gradient at the slice, and zeros elsewhere.
"""

import torch
from blocks.complex_numbers import as_reals
from blocks.regions import sliced

OVERLOADS = ("aten::slice_backward",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64",
    "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(grad_output, input_sizes, dim, start, end, step):
    out = torch.empty(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    sliced(as_reals(grad_output), as_reals(out), dim % out.dim(), start, end, step)
    return out
