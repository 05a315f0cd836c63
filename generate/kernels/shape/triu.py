"""aten::triu(Tensor self, SymInt diagonal=0) -> Tensor

An element is zero if its column exceeds its row by less than `diagonal`.
"""

import torch
from blocks.triangles import triangle

OVERLOADS = ("aten::triu",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, diagonal=0, *, out=None):
    if self.dim() < 2:
        raise RuntimeError(f"triu needs at least two dimensions, got {self.dim()}")
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device) if out is None else out
    return triangle(self, out, diagonal, True)
