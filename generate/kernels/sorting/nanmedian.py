"""aten::nanmedian(Tensor self) -> Tensor
aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)

NaN elements are ignored. For an even count, the result is the lower of the two middle elements. If all
elements are NaN, it is NaN.
"""

from blocks.ranked import middle_of

OVERLOADS = ("aten::nanmedian", "aten::nanmedian.dim")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False):
    return middle_of("nanmedian", self, dim, keepdim)
