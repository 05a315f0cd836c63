"""aten::tril(Tensor self, SymInt diagonal=0) -> Tensor

An element is zero if its column exceeds its row by more than `diagonal`.
"""

import torch
from blocks.triangles import triangle

OVERLOADS = ("aten::tril",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, diagonal=0):
    if self.dim() < 2:
        raise RuntimeError(f"tril needs at least two dimensions, got {self.dim()}")
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return triangle(self, out, diagonal, False)
