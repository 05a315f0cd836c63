"""aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

Without a dtype the value's type decides.
"""

from blocks.creation import new_full
from blocks.types import common_dtype

OVERLOADS = ("aten::full",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    return new_full(size, fill_value, dtype or common_dtype(fill_value), device)
