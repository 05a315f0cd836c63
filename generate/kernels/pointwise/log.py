"""aten::log(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::log",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def log_of(x):
    return tl.log(x)


def wrapper(self, *, out=None):
    return elementwise(log_of, self, to_float=True, out=out)
