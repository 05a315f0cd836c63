"""aten::round.decimals(Tensor self, *, int decimals) -> Tensor

The value is multiplied or divided by a power of ten and rounded in the compute dtype. Halves round to the
even neighbor.
"""

import triton
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.functions import to_nearest

OVERLOADS = ("aten::round.decimals",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def to_decimals(x, scale):
    return divide(to_nearest(x * scale), scale)


@triton.jit
def to_tens(x, scale):
    return to_nearest(divide(x, scale)) * scale


def wrapper(self, *, decimals, out=None):
    if not self.is_floating_point():
        raise NotImplementedError("rounding to decimals needs floating-point elements")
    numbers = (10.0 ** abs(decimals),)
    return elementwise(to_decimals if decimals > 0 else to_tens, self, numbers=numbers, out=out)
