"""aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor"""

import torch
from blocks.regions import selected

OVERLOADS = ("aten::select_backward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(grad_output, input_sizes, dim, index):
    out = torch.empty(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    return selected(grad_output, out, dim, index)
