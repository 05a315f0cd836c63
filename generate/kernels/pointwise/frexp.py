"""aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)

x = fraction * 2^exponent, with |fraction| in [0.5, 1). Denormals are first multiplied by 2^64.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import exponent_bits

OVERLOADS = ("aten::frexp.Tensor",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def frexp(x):
    DOUBLE: tl.constexpr = x.dtype.is_fp64()
    small = tl.abs(x) < (2.2250738585072014e-308 if DOUBLE else 1.1754943508222875e-38)
    y = tl.where(small, x * 18446744073709551616.0, x)
    k = exponent_bits(y) - (1022 if DOUBLE else 126)
    odd = (x == 0) | (x != x) | (tl.abs(x) == float("inf"))
    bits = y.to(tl.int64 if DOUBLE else tl.int32, bitcast=True) - (k << (52 if DOUBLE else 23))
    fraction = bits.to(x.dtype, bitcast=True)
    return tl.where(odd, x, fraction), tl.where(odd, 0, k - tl.where(small, 64, 0))


def wrapper(self):
    return elementwise(frexp, self, dtype=(self.dtype, torch.int32))
