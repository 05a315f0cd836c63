"""aten::div.Tensor(Tensor self, Tensor other) -> Tensor
aten::div.Scalar(Tensor self, Scalar other) -> Tensor
"""

import torch
from blocks.arithmetic import divide
from blocks.complex_numbers import complex_elementwise
from blocks.complex_systems import complex_quotient
from blocks.elementwise import elementwise

OVERLOADS = ("aten::div.Tensor", "aten::div.Scalar")
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, other, *, out=None):
    dtype = torch.result_type(self, other)
    if dtype.is_complex:
        return complex_elementwise(complex_quotient, self, other, dtype=dtype, out=out)
    return elementwise(divide, self, other, to_float=True, out=out)
