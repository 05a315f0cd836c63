"""aten::unsqueeze_copy(Tensor self, int dim) -> Tensor"""

from blocks.copies import copied

OVERLOADS = ("aten::unsqueeze_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, *, out=None):
    return copied(self.unsqueeze(dim), out)
