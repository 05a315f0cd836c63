"""aten::exp(Tensor self) -> Tensor

Element by element, computed in fp32 for fp16, bf16 and integers; integers give the default floating-point dtype.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::exp",)
DTYPES = ("bfloat16", "float16", "float32", "int32", "int64")


@triton.jit
def exponential(x):
    return tl.exp(x)


def wrapper(self, *, out=None):
    return elementwise(exponential, self, to_float=True, out=out)
