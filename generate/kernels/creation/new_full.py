"""aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None) -> Tensor

Fills every element with the same number.
"""

from blocks.creation import new_full
from blocks.number_range import without_overflow

OVERLOADS = ("aten::new_full",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    without_overflow(dtype or self.dtype, fill_value)
    return new_full(size, fill_value, dtype or self.dtype, self.device if device is None else device)
