"""aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]"""

from blocks.copies import separate

OVERLOADS = ("aten::split_with_sizes_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, split_sizes, dim=0):
    return separate(self, split_sizes, dim % self.dim())
