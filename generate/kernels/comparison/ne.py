"""aten::ne.Tensor(Tensor self, Tensor other) -> Tensor
aten::ne.Scalar(Tensor self, Scalar other) -> Tensor

A Python number is rounded to the common dtype before the comparison.
"""

import torch
import triton
from blocks.complex_functions import of_parts
from blocks.complex_numbers import parts_of
from blocks.elementwise import elementwise
from blocks.types import common_dtype, rounded

OVERLOADS = ("aten::ne.Tensor", "aten::ne.Scalar")
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def ne(x, y):
    return x != y


@triton.jit
def complex_ne(a, b, c, d):
    return (a != c) | (b != d)


def wrapper(self, other, *, out=None):
    common = torch.result_type(self, other)
    if common.is_complex:
        parts = *parts_of(self), *parts_of(other)
        return of_parts(complex_ne, *parts, common=common.to_real(), dtype=torch.bool, out=out)
    other = other if isinstance(other, torch.Tensor) else rounded(other, common_dtype(self, other))
    return elementwise(ne, self, other, dtype=torch.bool, out=out)
