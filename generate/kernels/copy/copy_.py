"""aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)"""

from blocks.creation import fill

OVERLOADS = ("aten::copy_",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, src, non_blocking=False):
    return fill(self, src)
