"""aten::any(Tensor self) -> Tensor
aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor

NaN is true. If `dims` is an empty list, there is no reduction, and each element is converted to its truth
value.
"""

from blocks.truth import truth

OVERLOADS = ("aten::any", "aten::any.dim", "aten::any.dims")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False):
    return truth("max", self, dim, keepdim)
