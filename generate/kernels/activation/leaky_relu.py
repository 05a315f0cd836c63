"""aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::leaky_relu",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def leaky_relu(x, slope):
    return tl.where(x > 0, x, x * slope)


def wrapper(self, negative_slope=0.01, *, out=None):
    return elementwise(leaky_relu, self, numbers=(negative_slope,), out=out)
