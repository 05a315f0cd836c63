"""aten::cos(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.complex_functions import hyperbolic_pair
from blocks.complex_numbers import complex_elementwise
from blocks.elementwise import elementwise

OVERLOADS = ("aten::cos",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def cos_of(x):
    return tl.cos(x)


@triton.jit
def complex_cos(a, b):
    """Return cos(a) cosh(b) - i sin(a) sinh(b)."""
    cosh, sinh, rest = hyperbolic_pair(b)
    real = tl.where((a - a != 0) & (tl.abs(b) == float("inf")), float("inf"), tl.cos(a) * cosh * rest)
    return real, tl.where((a == 0) | (b == 0), 0.0, tl.sin(a) * sinh * rest * -1.0)


def wrapper(self, *, out=None):
    if self.is_complex():
        return complex_elementwise(complex_cos, self, dtype=self.dtype, out=out)
    return elementwise(cos_of, self, to_float=True, out=out)
