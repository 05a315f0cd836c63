"""aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)

The result is always in ascending order. Each NaN is distinct and follows all numbers. The result's size is
read back.
"""

from blocks.distinct import distinct_elements
from blocks.sorting import sorted_order

OVERLOADS = ("aten::_unique",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, sorted=True, return_inverse=False):
    return distinct_elements(self, sorted_order(self), return_inverse, False)[:2]
