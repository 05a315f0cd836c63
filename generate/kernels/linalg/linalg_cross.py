"""aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor

One launch computes all three components.
"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.types import identical_dtypes

OVERLOADS = ("aten::linalg_cross",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def cross(a, b, c, x, y, z):
    return b * z - c * y, c * x - a * z, a * y - b * x


def wrapper(self, other, *, dim=-1):
    identical_dtypes(self, other)
    if self.dtype == torch.bool:
        raise NotImplementedError("linalg.cross does not support bool")
    if self.dim() != other.dim():
        raise RuntimeError(
            f"linalg.cross needs equally many dimensions, got {tuple(self.shape)} and {tuple(other.shape)}"
        )
    if self.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross needs size 3 along dimension {dim}, got {tuple(self.shape)} and {tuple(other.shape)}"
        )
    size = torch.broadcast_shapes(self.shape, other.shape)
    out = torch.empty(size, dtype=self.dtype, device=self.device)
    operands = [t.expand(size).select(dim, k) for t in (self, other) for k in range(3)]
    elementwise(cross, *operands, out=tuple([out.select(dim, k) for k in range(3)]))
    return out
