"""aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::_prelu_kernel",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def prelu(x, weight):
    return tl.where(x > 0, x, x * weight)


def wrapper(self, weight):
    return elementwise(prelu, self, weight)
