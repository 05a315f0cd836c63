"""aten::acosh(Tensor self) -> Tensor

With t = x - 1, log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t * (t + 2))), which stays accurate near x = 1.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p

OVERLOADS = ("aten::acosh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def acosh(x):
    t = x - 1
    far = t > 1e9
    r = log1p(tl.where(far, t, t + tl.sqrt(t * (t + 2))))
    return tl.where(x < 1, float("nan"), tl.where(far, r + 0.6931471805599453, r))


def wrapper(self, *, out=None):
    return elementwise(acosh, self, to_float=True, out=out)
