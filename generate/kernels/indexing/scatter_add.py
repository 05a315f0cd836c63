"""aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor

Adds with atomics. Narrow dtypes are accumulated in 32 bits, so that no partial sum is rounded.
"""

from blocks.indexing_along import put_along

OVERLOADS = ("aten::scatter_add",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, src, *, out=None):
    return put_along(self, dim, index, src, True, out)
