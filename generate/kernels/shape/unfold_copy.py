"""aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor"""

from blocks.copies import copied

OVERLOADS = ("aten::unfold_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dimension, size, step, *, out=None):
    return copied(self.unfold(dimension, size, step), out)
