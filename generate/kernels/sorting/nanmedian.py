"""aten::nanmedian(Tensor self) -> Tensor
aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)

Of an even number of elements the lower of the two in the middle, NaN left out; NaN where all are.
"""

from blocks.ranked import middle_of

OVERLOADS = ("aten::nanmedian", "aten::nanmedian.dim")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False):
    return middle_of("nanmedian", self, dim, keepdim)
