"""aten::logit(Tensor self, float? eps=None) -> Tensor

Computes log(x / (1 - x)). If eps is given, x is clamped to [eps, 1 - eps] first.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise

OVERLOADS = ("aten::logit",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def logit(x):
    return tl.log(divide(x, 1 - x))


@triton.jit
def logit_between(x, low, high):
    x = tl.where(x < low, low, tl.where(x > high, high, x))
    return tl.log(divide(x, 1 - x))


@triton.jit
def short_logit(x):
    """Return logit(x) for fp16 and bf16 with an approximate division.

    In these dtypes x is never so near to 1/2 that the quotient needs correct rounding.
    """
    return tl.log(x / (1 - x))


@triton.jit
def short_logit_between(x, low, high):
    return short_logit(tl.where(x < low, low, tl.where(x > high, high, x)))


def wrapper(self, eps=None, *, out=None):
    half = self.is_floating_point() and self.itemsize == 2
    if eps is None:
        return elementwise(short_logit if half else logit, self, to_float=True, out=out)
    function = short_logit_between if half else logit_between
    return elementwise(function, self, numbers=(eps, 1 - eps), to_float=True, out=out)
