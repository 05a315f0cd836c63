"""aten::stack(Tensor[] tensors, int dim=0) -> Tensor

The output has the layout of `cat`'s result, with dim split in two: channels-last if all inputs are, else
contiguous.
"""

import torch
from blocks.joining import common_format, join, promoted

OVERLOADS = ("aten::stack",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(tensors, dim=0):
    first, count, dtype = tensors[0], len(tensors), promoted(tensors)
    if any([t.shape != first.shape for t in tensors]):
        raise RuntimeError(f"stack needs equal shapes, got {[tuple(t.shape) for t in tensors]}")
    dim = dim % (first.dim() + 1)
    if dim == first.dim():
        out = torch.empty((*first.shape, count), dtype=dtype, device=first.device)
    else:
        shape = [*first.shape[:dim], count * first.shape[dim], *first.shape[dim + 1 :]]
        out = torch.empty(shape, dtype=dtype, device=first.device, memory_format=common_format(tensors))
        out = out.unflatten(dim, (count, first.shape[dim]))
    return join(tensors, out.unbind(dim), out, dim)
