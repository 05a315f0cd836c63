"""aten::sin(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.complex_functions import hyperbolic_pair
from blocks.complex_numbers import complex_elementwise
from blocks.elementwise import elementwise
from blocks.functions import sin

OVERLOADS = ("aten::sin",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def sin_of(x):
    return sin(x)


@triton.jit
def complex_sin(a, b):
    """Return sin(a) cosh(b) + i cos(a) sinh(b)."""
    cosh, sinh, rest = hyperbolic_pair(b)
    imaginary = tl.cos(a) * sinh * rest
    lost = (a - a != 0) & ((b == 0) | (tl.abs(b) == float("inf")))
    return tl.where(a == 0, a, sin(a) * cosh * rest), tl.where(lost, b, imaginary)


def wrapper(self, *, out=None):
    if self.is_complex():
        return complex_elementwise(complex_sin, self, dtype=self.dtype, out=out)
    return elementwise(sin_of, self, to_float=True, out=out)
