"""aten::clamp_max(Tensor self, Scalar max) -> Tensor
aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor

NaN wins.
"""

from blocks.arithmetic import no_more
from blocks.elementwise import elementwise

OVERLOADS = ("aten::clamp_max", "aten::clamp_max.Tensor")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, max, *, out=None):
    return elementwise(no_more, self, max, out=out)
