"""aten::fill.Scalar(Tensor self, Scalar value) -> Tensor
aten::fill.Tensor(Tensor self, Tensor value) -> Tensor
"""

import torch
from blocks.complex_numbers import convert_into
from blocks.number_range import without_overflow

OVERLOADS = ("aten::fill.Scalar", "aten::fill.Tensor")
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, value, *, out=None):
    if isinstance(value, complex) and not self.is_complex():
        raise RuntimeError(f"cannot fill {self.dtype} with complex {value}")
    without_overflow(self.dtype, value)
    return convert_into(torch.empty_like(self) if out is None else out, value)
