"""aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor"""

from blocks.copies import copied

OVERLOADS = ("aten::diagonal_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, offset=0, dim1=0, dim2=1, *, out=None):
    return copied(self.diagonal(offset, dim1, dim2), out)
