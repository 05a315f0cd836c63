"""aten::silu(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::silu",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def silu(x):
    return x / (1 + tl.exp(-x))


def wrapper(self, *, out=None):
    return elementwise(silu, self, out=out)
