"""aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor

The condition is a bool, or a byte that is true where it is not zero. What is chosen keeps its bits.
"""

import torch
import triton
import triton.language as tl
from blocks.creation import as_bits
from blocks.elementwise import elementwise
from blocks.types import common_dtype

OVERLOADS = ("aten::where.self",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def where(condition, x, y):
    return tl.where(condition != 0, x, y)


def wrapper(condition, self, other, *, out=None):
    common = common_dtype(self, other)
    given = [t for t in (self, other, out) if t is not None]
    if not all([isinstance(t, torch.Tensor) and t.dtype == common for t in given]):
        return elementwise(where, condition, self, other, common=common, out=out)
    self, other, *outs = as_bits(*given)
    found = elementwise(where, condition, self, other, out=outs[0] if outs else None)
    return found.view(common) if out is None else out
