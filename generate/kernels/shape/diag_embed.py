"""aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor"""

import torch
from blocks.creation import fill

OVERLOADS = ("aten::diag_embed",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, offset=0, dim1=-2, dim2=-1):
    dims = self.dim() + 1
    if not all([-dims <= d < dims for d in (dim1, dim2)]) or (dim1 - dim2) % dims == 0:
        raise IndexError(f"dim1 and dim2 must be different dimensions in [-{dims}, {dims}), got {dim1} and {dim2}")
    shape, size = list(self.shape[:-1]), self.shape[-1] + abs(offset)
    for d in sorted([dim1 % dims, dim2 % dims]):
        shape.insert(d, size)
    out = fill(torch.empty(shape, dtype=self.dtype, device=self.device), 0)
    fill(out.diagonal(offset, dim1, dim2), self)
    return out
