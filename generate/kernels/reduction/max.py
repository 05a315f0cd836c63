"""aten::max(Tensor self) -> Tensor

If any element is NaN, the result is NaN.
"""

from blocks.reduction import reduce

OVERLOADS = ("aten::max",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self):
    if self.numel() == 0:
        raise RuntimeError("max() needs at least one element")
    return reduce("max", [self], None, dtype=self.dtype)
