"""aten::masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor

Returns the gradient elements that the mask selects, followed by zeros.
"""

import math

import torch
from blocks.creation import fill
from blocks.selection import move_selected, true_starts

OVERLOADS = ("aten::masked_scatter_backward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(grad_output, mask, sizes):
    if mask.dtype != torch.bool:
        raise RuntimeError(f"mask must be bool, got {mask.dtype}")
    grad, mask = torch.broadcast_tensors(grad_output, mask)
    out = fill(torch.empty(sizes, dtype=grad.dtype, device=grad.device), 0)
    move_selected("select", grad, mask, true_starts(mask), out, math.prod(sizes))
    return out
