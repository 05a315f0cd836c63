"""aten::median(Tensor self) -> Tensor
aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)

Of an even number of elements the lower of the two in the middle; NaN where there is one.
"""

from blocks.ranked import middle_of

OVERLOADS = ("aten::median", "aten::median.dim")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False):
    return middle_of("median", self, dim, keepdim)
