"""aten::angle(Tensor self) -> Tensor

For a real number, the result is pi if x < 0, NaN if x is NaN, and else 0. For a complex number, it is the
angle of its parts.
"""

import torch
import triton
import triton.language as tl
from blocks.complex_functions import of_parts
from blocks.complex_numbers import parts_of
from blocks.elementwise import elementwise
from blocks.functions import arctangent_of

OVERLOADS = ("aten::angle",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def angle_of(x):
    return tl.where(x != x, x, tl.where(x < 0, tl.zeros_like(x) + 3.141592653589793, 0.0))


def wrapper(self, *, out=None):
    if self.is_complex():
        real, imaginary = parts_of(self)
        if out is None:
            out = torch.empty(self.shape, dtype=self.dtype.to_real(), device=self.device)
        return of_parts(arctangent_of, imaginary, real, dtype=self.dtype.to_real(), out=out)
    return elementwise(angle_of, self, to_float=True, out=out)
