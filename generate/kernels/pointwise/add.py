"""aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.sparse_sums import add_sparse

OVERLOADS = ("aten::add.Tensor", "aten::add.Scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
LAYOUTS = ("sparse_coo", "strided")


@triton.jit
def add(x, y, alpha):
    return x + y * alpha


def wrapper(self, other, alpha=1, *, out=None):
    if self.is_sparse or (isinstance(other, torch.Tensor) and other.is_sparse):
        return add_sparse(self, other, alpha, out)
    return elementwise(add, self, other, numbers=(alpha,), out=out)
