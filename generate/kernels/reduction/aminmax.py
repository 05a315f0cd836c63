"""aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)

Both results come from one pass. If any element is NaN, both are NaN.
"""

import triton
from blocks.reduction import reduce

OVERLOADS = ("aten::aminmax",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def twice(x):
    return x, x


@triton.jit
def both(least, most, n):
    return least, most


def wrapper(self, *, dim=None, keepdim=False):
    options = {"map": twice, "finish": both, "dtype": (self.dtype, self.dtype)}
    return reduce("minmax", [self], None if dim is None else [dim], keepdim, **options)
