"""aten::neg(Tensor self) -> Tensor"""

import triton
from blocks.complex_numbers import complex_elementwise
from blocks.elementwise import elementwise

OVERLOADS = ("aten::neg",)
DTYPES = (
    "bfloat16", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def neg(x):
    # Some Triton versions compute -x as 0 - x, which returns +0 instead of -0 for x = +0.
    return x * -1.0 if x.dtype.is_floating() else -x


@triton.jit
def complex_neg(a, b):
    return a * -1.0, b * -1.0


def wrapper(self, *, out=None):
    if self.is_complex():
        return complex_elementwise(complex_neg, self, dtype=self.dtype, out=out)
    return elementwise(neg, self, out=out)
