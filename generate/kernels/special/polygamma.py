"""aten::polygamma(int n, Tensor self) -> Tensor

The n-th derivative of digamma, (-1)^(n + 1) n! zeta(n + 1, x), in fp64 for fp32; the first is reflected below 1/2.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.functions import to_nearest
from blocks.gamma import digamma, hurwitz_zeta
from blocks.types import float_dtype

OVERLOADS = ("aten::polygamma",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def polygamma(x, n, sign, factorial):
    return sign * factorial * hurwitz_zeta(n + 1, x)


@triton.jit
def trigamma(x):
    sine = tl.sin(3.141592653589793 * (x - to_nearest(x)))
    above = hurwitz_zeta(2.0 + tl.zeros_like(x), tl.where(x < 0.5, 1 - x, x))
    return tl.where(x < 0.5, divide(9.869604401089358 + tl.zeros_like(x), sine * sine) - above, above)


def wrapper(n, self, *, out=None):
    if n < 0:
        raise RuntimeError(f"polygamma of order {n} < 0")
    dtype = float_dtype(self.dtype)
    if n == 0:
        return elementwise(digamma, self, to_float=True, out=out)
    if n == 1:
        return elementwise(trigamma, self, common=torch.float64, dtype=dtype, out=out)
    factorial = 1
    for k in range(2, n + 1):
        factorial *= k
    numbers = n, 1 if n % 2 else -1, factorial
    return elementwise(polygamma, self, numbers=numbers, common=torch.float64, dtype=dtype, out=out)
