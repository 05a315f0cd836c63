"""aten::round(Tensor self) -> Tensor

Halves round to the even neighbor.
"""

import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.functions import to_nearest

OVERLOADS = ("aten::round",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def nearest_whole(x):
    """Return the nearest integer.

    In fp32, adding 2^23 to a magnitude below 2^23 rounds it to an integer.
    """
    if x.dtype.is_fp64():
        r = to_nearest(x)
    else:
        size = tl.abs(x)
        whole = ((size + 8388608.0) - 8388608.0).to(tl.int32, bitcast=True)
        signed = (whole | (x.to(tl.int32, bitcast=True) & -2147483648)).to(tl.float32, bitcast=True)
        r = tl.where(size < 8388608.0, signed, x)
    return r


def wrapper(self, *, out=None):
    return elementwise(nearest_whole if self.is_floating_point() else identity, self, out=out)
