"""aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)

Of equal elements, or NaN, the last.
"""

from blocks.scan import scan_along

OVERLOADS = ("aten::cummax",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim):
    return scan_along("max", self, dim, self.dtype)
