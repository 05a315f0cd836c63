"""aten::tril(Tensor self, SymInt diagonal=0) -> Tensor

An element whose column lies more than `diagonal` right of its row is zero.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::tril",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def lower(start, BLOCK: tl.constexpr, rows, columns, diagonal):
    """Whether an element is on or below the diagonal."""
    i = start + tl.arange(0, BLOCK)
    columns, rows = columns.to(i.dtype), rows.to(i.dtype)  # of fewer elements than i counts
    return i % columns - i // columns % rows <= diagonal


@triton.jit
def kept(inside, x):
    return tl.where(inside, x, tl.zeros_like(x))


def wrapper(self, diagonal=0):
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return elementwise(kept, self, source=(lower, *self.shape[-2:], diagonal), out=out)
