"""aten::reciprocal(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.complex_numbers import complex_elementwise
from blocks.complex_systems import complex_quotient
from blocks.elementwise import elementwise

OVERLOADS = ("aten::reciprocal",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def reciprocal(x):
    return divide(tl.full(x.shape, 1, x.dtype), x)


@triton.jit
def complex_reciprocal(a, b):
    return complex_quotient(tl.full(a.shape, 1, a.dtype), tl.zeros_like(a), a, b)


def wrapper(self, *, out=None):
    if self.is_complex():
        return complex_elementwise(complex_reciprocal, self, dtype=self.dtype, out=out)
    return elementwise(reciprocal, self, to_float=True, out=out)
