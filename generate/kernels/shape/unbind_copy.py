"""aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]"""

from blocks.copies import separate

OVERLOADS = ("aten::unbind_copy.int",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=0):
    dim = dim % self.dim()
    return [part.select(dim, 0) for part in separate(self, [1] * self.shape[dim], dim)]
