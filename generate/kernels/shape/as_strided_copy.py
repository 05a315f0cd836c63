"""aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor"""

from blocks.copies import copied

OVERLOADS = ("aten::as_strided_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, size, stride, storage_offset=None, *, out=None):
    return copied(self.as_strided(size, stride, storage_offset), out)
