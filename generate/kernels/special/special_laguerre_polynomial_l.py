"""aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor
aten::special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor
aten::special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor

Computed in fp64 for all dtypes, because the recurrence amplifies rounding errors.
"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.polynomials import finite_degree, recurrent_polynomial
from blocks.types import common_dtype, float_dtype

OVERLOADS = (
    "aten::special_laguerre_polynomial_l",
    "aten::special_laguerre_polynomial_l.n_scalar",
    "aten::special_laguerre_polynomial_l.x_scalar",
)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def laguerre_l(x, n):
    return recurrent_polynomial(x, n, "laguerre")


def wrapper(x, n, *, out=None):
    finite_degree(n)
    dtype = float_dtype(common_dtype(x, n))
    return elementwise(laguerre_l, x, n, common=torch.float64, dtype=dtype, out=out)
