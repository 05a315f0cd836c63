"""aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"""

from blocks.indexing_along import gather_along

OVERLOADS = ("aten::gather",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, *, sparse_grad=False):
    return gather_along(self, dim, index)
