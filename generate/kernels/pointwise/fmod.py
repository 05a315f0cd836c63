"""aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor
aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor

The result has the sign of the dividend. An integer divided by 0 returns 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import exact_remainder, short_rest, with_sign
from blocks.types import common_dtype

OVERLOADS = ("aten::fmod.Tensor", "aten::fmod.Scalar")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def fmod(x, y):
    """Return the remainder, in one step if all quotients in the block are less than 2^18."""
    if x.dtype.is_fp64():
        r = exact_remainder(x, y)
    else:
        rest, q = short_rest(tl.abs(x), tl.abs(y))
        r = with_sign(rest, x)
        if tl.max(q.to(tl.int32, bitcast=True), 0) >= 0x48800000:  # 2^18, or NaN
            r = exact_remainder(x, y)
    return r


@triton.jit
def fmod_of_integers(x, y):
    return tl.where((y == 0) | (y == -1), 0, x % tl.where((y == 0) | (y == -1), 1, y))


def wrapper(self, other, *, out=None):
    function = fmod if common_dtype(self, other).is_floating_point else fmod_of_integers
    return elementwise(function, self, other, out=out)
