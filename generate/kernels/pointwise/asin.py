"""aten::asin(Tensor self) -> Tensor

The angle whose sine is x and cosine sqrt(1 - x^2).
"""

import triton
from blocks.arithmetic import root
from blocks.elementwise import elementwise
from blocks.functions import arctangent_of

OVERLOADS = ("aten::asin",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def asin(x):
    return arctangent_of(x, root((1 - x) * (1 + x)))


def wrapper(self, *, out=None):
    return elementwise(asin, self, to_float=True, out=out)
