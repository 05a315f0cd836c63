"""aten::clamp_max(Tensor self, Scalar max) -> Tensor
aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor

If either operand is NaN, the result is NaN.
"""

from blocks.arithmetic import no_more
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow
from blocks.types import common_dtype

OVERLOADS = ("aten::clamp_max", "aten::clamp_max.Tensor")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, max, *, out=None):
    dtype = common_dtype(self, max)
    if not dtype.is_floating_point:
        without_overflow(dtype, max)
    return elementwise(no_more, self, max, out=out)
