"""aten::median(Tensor self) -> Tensor
aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)

For an even count, the result is the lower of the two middle elements. If any element is NaN, it is NaN.
"""

from blocks.ranked import middle_of

OVERLOADS = ("aten::median", "aten::median.dim")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False):
    return middle_of("median", self, dim, keepdim)
