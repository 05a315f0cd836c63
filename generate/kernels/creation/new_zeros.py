"""aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

Fills every element with 0.
"""

import torch
from blocks.complex_numbers import as_reals
from blocks.creation import fill

OVERLOADS = ("aten::new_zeros",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex32", "complex64", "float16", "float32", "float64",
    "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    out = torch.empty(size, dtype=dtype or self.dtype, device=self.device if device is None else device)
    fill(as_reals(out), 0)
    return out
