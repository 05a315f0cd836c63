"""aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor

The condition is a bool, or a byte that counts as true unless it is 0. Results keep their bits if all dtypes
agree.
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
    operands = [t for t in (self, other, out) if t is not None]
    same_dtype = all([isinstance(t, torch.Tensor) and t.dtype == common for t in operands])
    if common == torch.complex64 and same_dtype:
        self, other, *outs = [t.view(torch.int64) for t in operands]
        result = elementwise(where, condition, self, other, out=outs[0] if outs else None)
        return result.view(common) if out is None else out
    if common.is_complex:
        return complex_elementwise(complex_where, condition, self, other, dtype=common, out=out)
    if not same_dtype:
        return elementwise(where, condition, self, other, common=common, out=out)
    self, other, *outs = as_bits(*operands)
    result = elementwise(where, condition, self, other, out=outs[0] if outs else None)
    return result.view(common) if out is None else out
