"""aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor
aten::special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor
aten::special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor

Computed in fp64 for all dtypes, because the recurrence amplifies rounding errors.
"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.polynomials import chebyshev_polynomial, finite_degree
from blocks.types import common_dtype, float_dtype

OVERLOADS = (
    "aten::special_chebyshev_polynomial_w",
    "aten::special_chebyshev_polynomial_w.n_scalar",
    "aten::special_chebyshev_polynomial_w.x_scalar",
)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def chebyshev_w(x, n):
    return chebyshev_polynomial(x, n, "W")


def wrapper(x, n, *, out=None):
    finite_degree(n)
    dtype = float_dtype(common_dtype(x, n))
    return elementwise(chebyshev_w, x, n, common=torch.float64, dtype=dtype, out=out)
