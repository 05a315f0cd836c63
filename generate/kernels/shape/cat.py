"""aten::cat(Tensor[] tensors, int dim=0) -> Tensor

Empty 1-D tensors are skipped, as in ATen. The output is channels-last if all inputs are, else contiguous.
"""

import torch
from blocks.joining import common_format, join, promoted

OVERLOADS = ("aten::cat",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(tensors, dim=0):
    nonempty = [t for t in tensors if t.dim() != 1 or t.numel()] or [tensors[0]]
    dim = dim % nonempty[0].dim()
    sizes = [t.shape[dim] for t in nonempty]
    other_sizes = [(*t.shape[:dim], *t.shape[dim + 1 :]) for t in nonempty]
    if any([shape != other_sizes[0] for shape in other_sizes]):
        raise RuntimeError(f"cannot join {[tuple(t.shape) for t in nonempty]} along dimension {dim}")
    shape = [*nonempty[0].shape[:dim], sum(sizes), *nonempty[0].shape[dim + 1 :]]
    out = torch.empty(shape, dtype=promoted(tensors), device=nonempty[0].device, memory_format=common_format(nonempty))
    return join(nonempty, out.split(sizes, dim), out, dim)
