"""aten::cat(Tensor[] tensors, int dim=0) -> Tensor

Empty 1-D tensors are skipped, as in ATen; the output is channels-last where all inputs are, else contiguous.
"""

import torch
from blocks.joining import common_format, join, promoted

OVERLOADS = ("aten::cat",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(tensors, dim=0):
    kept = [t for t in tensors if t.dim() != 1 or t.numel()] or [tensors[0]]
    dim = dim % kept[0].dim()
    sizes = [t.shape[dim] for t in kept]
    others = [(*t.shape[:dim], *t.shape[dim + 1 :]) for t in kept]
    if any([shape != others[0] for shape in others]):
        raise RuntimeError(f"joined along dimension {dim}: {[tuple(t.shape) for t in kept]}")
    shape = [*kept[0].shape[:dim], sum(sizes), *kept[0].shape[dim + 1 :]]
    out = torch.empty(shape, dtype=promoted(tensors), device=kept[0].device, memory_format=common_format(kept))
    return join(kept, out.split(sizes, dim), out, dim)
