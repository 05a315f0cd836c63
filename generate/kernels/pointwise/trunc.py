"""aten::trunc(Tensor self) -> Tensor"""

from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.functions import toward_zero

OVERLOADS = ("aten::trunc",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(toward_zero if self.is_floating_point() else identity, self, out=out)
