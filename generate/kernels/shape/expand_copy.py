"""aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor"""

from blocks.copies import copied

OVERLOADS = ("aten::expand_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, size, *, implicit=False, out=None):
    return copied(self.expand(size), out)
