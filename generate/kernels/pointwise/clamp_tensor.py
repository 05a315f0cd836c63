"""aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor

If any operand is NaN, the result is NaN. If min > max, the result is max.
"""

import triton
from blocks.arithmetic import no_less, no_more
from blocks.elementwise import elementwise

OVERLOADS = ("aten::clamp.Tensor",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def clamped(x, low, high):
    return no_more(no_less(x, low), high)


def wrapper(self, min=None, max=None, *, out=None):
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of 'min' and 'max' must not be None")
    if max is None:
        return elementwise(no_less, self, min, out=out)
    return elementwise(no_more, self, max, out=out) if min is None else elementwise(clamped, self, min, max, out=out)
