"""aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool
    sparse=False) -> Tensor

Gathers rows. padding_idx and the other flags only affect the gradient.
"""

import torch
from blocks.indexing import gather

OVERLOADS = ("aten::embedding",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    out = torch.empty((*indices.shape, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    return gather(weight, [indices], out, elements=8192)
