"""aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
"""

import torch
import triton
from blocks.complex_numbers import complex_elementwise, complex_product
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow
from blocks.sparse_sums import add_sparse

OVERLOADS = ("aten::add.Tensor", "aten::add.Scalar")
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip
LAYOUTS = ("sparse_coo", "strided")


@triton.jit
def add(x, y, alpha):
    return x + y * alpha


@triton.jit
def complex_add(a, b, c, d, p, q):
    c, d = complex_product(c, d, p, q)
    return a + c, b + d


def wrapper(self, other, alpha=1, *, out=None):
    dtype = torch.result_type(self, other)
    if self.is_sparse or (isinstance(other, torch.Tensor) and other.is_sparse):
        if dtype.is_complex or isinstance(alpha, complex):
            raise NotImplementedError("adding sparse complex tensors is not supported")
        return add_sparse(self, other, alpha, out)
    if dtype.is_complex:
        return complex_elementwise(complex_add, self, other, alpha, dtype=dtype, out=out)
    if not dtype.is_floating_point:
        without_overflow(dtype, alpha)
    return elementwise(add, self, other, numbers=(alpha,), out=out)
