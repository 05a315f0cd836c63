"""aten::acos(Tensor self) -> Tensor

Twice the angle whose tangent is sqrt((1 - x) / (1 + x)).
"""

import triton
from blocks.arithmetic import root
from blocks.elementwise import elementwise
from blocks.functions import arctangent_of

OVERLOADS = ("aten::acos",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def acos(x):
    return 2 * arctangent_of(root(1 - x), root(1 + x))


def wrapper(self, *, out=None):
    return elementwise(acos, self, to_float=True, out=out)
