"""aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor
aten::special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor
aten::special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor

Computed in fp64 for all dtypes, because the recurrence amplifies rounding errors.
"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.polynomials import finite_degree, recurrent_polynomial
from blocks.types import common_dtype, float_dtype

OVERLOADS = (
    "aten::special_hermite_polynomial_he",
    "aten::special_hermite_polynomial_he.n_scalar",
    "aten::special_hermite_polynomial_he.x_scalar",
)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def hermite_he(x, n):
    return recurrent_polynomial(x, n, "hermite_e")


def wrapper(x, n, *, out=None):
    finite_degree(n)
    dtype = float_dtype(common_dtype(x, n))
    return elementwise(hermite_he, x, n, common=torch.float64, dtype=dtype, out=out)
