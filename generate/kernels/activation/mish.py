"""aten::mish(Tensor self) -> Tensor

Computes x * tanh(log(1 + e^x)) as x * n / (n + 2) with n = e^x * (e^x + 2). For x > 20 the result is x.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::mish",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def mish(x):
    e = tl.exp(tl.where(x > 20, 20.0, x))
    n = e * (e + 2)
    return tl.where(x > 20, x, x * n / (n + 2))


def wrapper(self, *, out=None):
    return elementwise(mish, self, out=out)
