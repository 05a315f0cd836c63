"""aten::heaviside(Tensor self, Tensor values) -> Tensor

If self is NaN, the result is 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::heaviside",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def heaviside(x, value):
    return tl.where(x == 0, value, tl.where(x > 0, 1, 0).to(x.dtype))


def wrapper(self, values, *, out=None):
    if self.dtype != values.dtype:
        raise RuntimeError(f"heaviside needs one dtype, got {self.dtype} and {values.dtype}")
    return elementwise(heaviside, self, values, out=out)
