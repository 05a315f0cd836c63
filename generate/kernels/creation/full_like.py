"""aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor

Fills every element with the same number.
"""

from blocks.creation import full_as
from blocks.number_range import without_overflow

OVERLOADS = ("aten::full_like",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    without_overflow(dtype or self.dtype, fill_value)
    return full_as(self, fill_value, dtype, device, memory_format)
