"""aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
"""

import torch
import triton
from blocks.complex_numbers import complex_elementwise, complex_product
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow

OVERLOADS = ("aten::sub.Tensor", "aten::sub.Scalar")
DTYPES = (
    "bfloat16", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def sub(x, y, alpha):
    return x - y * alpha


@triton.jit
def complex_sub(a, b, c, d, p, q):
    c, d = complex_product(c, d, p, q)
    return a - c, b - d


def wrapper(self, other, alpha=1, *, out=None):
    dtype = torch.result_type(self, other)
    if dtype.is_complex:
        return complex_elementwise(complex_sub, self, other, alpha, dtype=dtype, out=out)
    if not dtype.is_floating_point:
        without_overflow(dtype, alpha)
    return elementwise(sub, self, other, numbers=(alpha,), out=out)
