"""aten::lgamma(Tensor self) -> Tensor

Computes log |Gamma(x)|.
"""

from blocks.elementwise import elementwise
from blocks.gamma import log_gamma

OVERLOADS = ("aten::lgamma",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(log_gamma, self, to_float=True, out=out)
