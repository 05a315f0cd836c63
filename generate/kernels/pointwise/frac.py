"""aten::frac(Tensor self) -> Tensor"""

import triton
from blocks.elementwise import elementwise
from blocks.functions import toward_zero

OVERLOADS = ("aten::frac",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def frac(x):
    return x - toward_zero(x)


def wrapper(self, *, out=None):
    return elementwise(frac, self, out=out)
