"""aten::abs(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.complex_numbers import parts_of
from blocks.elementwise import elementwise

OVERLOADS = ("aten::abs",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def absolute(x):
    return tl.abs(x)


@triton.jit
def modulus(a, b):
    a, b = tl.abs(a), tl.abs(b)
    large = tl.maximum(a, b)
    size = tl.where((large > 0) & (large < float("inf")), large, 1.0)
    a, b = divide(a, size), divide(b, size)
    size *= root(a * a + b * b)
    return tl.where((a == float("inf")) | (b == float("inf")), float("inf"), size)


def wrapper(self, *, out=None):
    if self.is_complex():
        return elementwise(modulus, *parts_of(self), out=out)
    return elementwise(absolute, self, out=out)
