"""aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor

Returns self if it is NaN or greater than threshold, else value. Threshold is first rounded to the tensor's
dtype.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow
from blocks.types import rounded

OVERLOADS = ("aten::threshold",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def threshold_value(x, threshold, value):
    return tl.where(x <= threshold, value, x)


def wrapper(self, threshold, value, *, out=None):
    if not self.dtype.is_floating_point:
        without_overflow(self.dtype, threshold, value)
    numbers = rounded(threshold, self.dtype), value
    return elementwise(threshold_value, self, numbers=numbers, out=out)
