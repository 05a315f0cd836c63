"""aten::acosh(Tensor self) -> Tensor

log(x + sqrt(x^2 - 1)) as log1p of what is over 1.
"""

import triton
import triton.language as tl
from blocks.arithmetic import root
from blocks.elementwise import elementwise
from blocks.functions import log1p

OVERLOADS = ("aten::acosh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def acosh(x):
    t = x - 1
    far = tl.log(x) + 0.6931471805599453
    near = log1p(t + root(2 * t + t * t))
    return tl.where(x < 1, float("nan"), tl.where(x < 1e9, near, far))


def wrapper(self, *, out=None):
    return elementwise(acosh, self, to_float=True, out=out)
