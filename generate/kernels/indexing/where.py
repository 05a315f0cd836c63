"""aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor

The condition is a bool, or a byte that is true where it is not zero. What is chosen keeps its bits.
"""

import torch
import triton
import triton.language as tl
from blocks.complex_numbers import complex_elementwise
from blocks.creation import as_bits
from blocks.elementwise import elementwise

OVERLOADS = ("aten::where.self",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def where(condition, x, y):
    return tl.where(condition != 0, x, y)


@triton.jit
def complex_where(condition, zero, a, b, c, d):
    return tl.where(condition != 0, a, c), tl.where(condition != 0, b, d)


def wrapper(condition, self, other, *, out=None):
    common = torch.result_type(self, other)
    given = [t for t in (self, other, out) if t is not None]
    alike = all([isinstance(t, torch.Tensor) and t.dtype == common for t in given])
    if common == torch.complex64 and alike:
        self, other, *outs = [t.view(torch.int64) for t in given]
        found = elementwise(where, condition, self, other, out=outs[0] if outs else None)
        return found.view(common) if out is None else out
    if common.is_complex:
        return complex_elementwise(complex_where, condition, self, other, dtype=common, out=out)
    if not alike:
        return elementwise(where, condition, self, other, common=common, out=out)
    self, other, *outs = as_bits(*given)
    found = elementwise(where, condition, self, other, out=outs[0] if outs else None)
    return found.view(common) if out is None else out
