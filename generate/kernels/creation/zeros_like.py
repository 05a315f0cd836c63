"""aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None, MemoryFormat? memory_format=None) -> Tensor

Fills every element with 0.
"""

from blocks.creation import full_as

OVERLOADS = ("aten::zeros_like",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return full_as(self, 0, dtype, device, memory_format)
