"""aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)

The index is that of the last NaN, or of the last among equal elements.
"""

from blocks.scan import scan_along

OVERLOADS = ("aten::cummax",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim):
    return scan_along("max", self, dim, self.dtype)
