"""aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor
aten::special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor
aten::special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor

Computed in fp64 for all dtypes, because the recurrence amplifies rounding errors.
"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.polynomials import chebyshev_polynomial, finite_degree
from blocks.types import common_dtype, float_dtype

OVERLOADS = (
    "aten::special_shifted_chebyshev_polynomial_u",
    "aten::special_shifted_chebyshev_polynomial_u.n_scalar",
    "aten::special_shifted_chebyshev_polynomial_u.x_scalar",
)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def shifted_chebyshev_u(x, n):
    return chebyshev_polynomial(2 * x - 1, n, "U")


def wrapper(x, n, *, out=None):
    finite_degree(n)
    dtype = float_dtype(common_dtype(x, n))
    return elementwise(shifted_chebyshev_u, x, n, common=torch.float64, dtype=dtype, out=out)
