"""aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

If dtype is None, it is derived from the value's type.
"""

import torch
from blocks.complex_numbers import convert_into
from blocks.number_range import without_overflow
from blocks.types import common_dtype

OVERLOADS = ("aten::full",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    if dtype is None:
        is_complex = isinstance(fill_value, complex)
        dtype = torch.get_default_dtype().to_complex() if is_complex else common_dtype(fill_value)
    if isinstance(fill_value, complex) and not dtype.is_complex:
        raise NotImplementedError(f"cannot fill {dtype} with complex {fill_value}")
    without_overflow(dtype, fill_value)
    return convert_into(torch.empty(size, dtype=dtype, device=device), fill_value)
