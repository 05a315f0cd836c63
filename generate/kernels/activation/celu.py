"""aten::celu(Tensor self, Scalar alpha=1.) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import expm1

OVERLOADS = ("aten::celu",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def celu(x, alpha, step):
    return tl.where(x < 0, expm1(x * step) * alpha, x)


def wrapper(self, alpha=1.0, *, out=None):
    if alpha == 0:
        raise RuntimeError("alpha must not be 0: celu divides by it")
    return elementwise(celu, self, numbers=(alpha, 1.0 / alpha), out=out)
