"""aten::sgn(Tensor self) -> Tensor

A complex number is divided by its absolute value, and 0 returns 0. If a part is infinite, the quotients are
NaN for infinite parts and 0 for finite ones.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root, sign_of
from blocks.complex_numbers import complex_elementwise
from blocks.elementwise import elementwise

OVERLOADS = ("aten::sgn",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64",
    "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def direction(a, b):
    large = tl.maximum(tl.abs(a), tl.abs(b))
    large = tl.where((large == 0) | (large == float("inf")), 1.0, large)
    a, b = divide(a, large), divide(b, large)
    size = root(a * a + b * b)
    size = tl.where(size == 0, 1.0, size)
    return divide(a, size), divide(b, size)


def wrapper(self, *, out=None):
    if self.is_complex():
        return complex_elementwise(direction, self, dtype=self.dtype, out=out)
    return elementwise(sign_of, self, out=out)
