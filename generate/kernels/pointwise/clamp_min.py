"""aten::clamp_min(Tensor self, Scalar min) -> Tensor
aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor

If either operand is NaN, the result is NaN.
"""

from blocks.arithmetic import no_less
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow
from blocks.types import common_dtype

OVERLOADS = ("aten::clamp_min", "aten::clamp_min.Tensor")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, min, *, out=None):
    dtype = common_dtype(self, min)
    if not dtype.is_floating_point:
        without_overflow(dtype, min)
    return elementwise(no_less, self, min, out=out)
