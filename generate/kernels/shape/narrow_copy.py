"""aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor"""

from blocks.copies import copied

OVERLOADS = ("aten::narrow_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, start, length, *, out=None):
    return copied(self.narrow(dim, start, length), out)
