"""aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor

Fills every element with 1.
"""

import torch
from blocks.complex_numbers import convert_into

OVERLOADS = ("aten::ones",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return convert_into(torch.empty(size, dtype=dtype, device=device), 1)
