"""aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor

The result has no dimensions and holds the number s.
"""

import torch
from blocks.creation import new_full
from blocks.number_range import without_overflow

OVERLOADS = ("aten::scalar_tensor",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(s, *, dtype=None, layout=None, device=None, pin_memory=None):
    without_overflow(dtype or torch.get_default_dtype(), s)
    return new_full((), s, dtype, device)
