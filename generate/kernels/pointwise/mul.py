"""aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
aten::mul.Scalar(Tensor self, Scalar other) -> Tensor
"""

import torch
import triton
from blocks.complex_numbers import complex_elementwise, complex_product
from blocks.elementwise import elementwise

OVERLOADS = ("aten::mul.Tensor", "aten::mul.Scalar")
DTYPES = (
    "bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64",
    "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def mul(x, y):
    return x * y


def wrapper(self, other, *, out=None):
    dtype = torch.result_type(self, other)
    if dtype.is_complex:
        return complex_elementwise(complex_product, self, other, dtype=dtype, out=out)
    return elementwise(mul, self, other, out=out)
