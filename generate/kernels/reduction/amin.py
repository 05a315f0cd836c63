"""aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor

If any element is NaN, the result is NaN.
"""

from blocks.reduction import reduce

OVERLOADS = ("aten::amin",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=(), keepdim=False):
    return reduce("min", [self], dim, keepdim, dtype=self.dtype)
