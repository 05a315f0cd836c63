"""aten::t_copy(Tensor self) -> Tensor"""

from blocks.copies import copied

OVERLOADS = ("aten::t_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return copied(self.t(), out)
