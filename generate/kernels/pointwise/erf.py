"""aten::erf(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::erf",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def erf_of(x):
    r = tl.erf(x)
    if x.dtype.is_fp32():  # on GPUs, tl.erf returns 0 for denormals
        r = tl.where(tl.abs(x) < 1e-4, x * 1.1283791670955126, r)
    return r


def wrapper(self, *, out=None):
    return elementwise(erf_of, self, to_float=True, out=out)
