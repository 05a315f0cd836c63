"""aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor,
    Tensor, Tensor)

Keeps one element, or slice along dim, from each run of equal neighbors. NaN is not equal to anything. The
result's size is read back.
"""

from blocks.distinct import distinct_elements, distinct_slices

OVERLOADS = ("aten::unique_consecutive",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, return_inverse=False, return_counts=False, dim=None):
    if dim is None or (dim == 0 and self.dim() == 1):
        return distinct_elements(self, None, return_inverse, return_counts)
    return distinct_slices(self, dim, None)
