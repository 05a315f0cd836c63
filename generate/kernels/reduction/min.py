"""aten::min(Tensor self) -> Tensor

If any element is NaN, the result is NaN.
"""

from blocks.reduction import reduce

OVERLOADS = ("aten::min",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self):
    if self.numel() == 0:
        raise RuntimeError("min() needs at least one element")
    return reduce("min", [self], None, dtype=self.dtype)
