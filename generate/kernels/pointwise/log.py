"""aten::log(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.complex_numbers import complex_elementwise
from blocks.elementwise import elementwise
from blocks.functions import arctangent_of, log1p

OVERLOADS = ("aten::log",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def log_of(x):
    return tl.log(x)


@triton.jit
def complex_log(a, b):
    """Return the logarithm of the modulus, and the angle.

    If the modulus is near 1, its logarithm is log1p(|z|^2 - 1) / 2.
    """
    large, small = tl.maximum(tl.abs(a), tl.abs(b)), tl.minimum(tl.abs(a), tl.abs(b))
    near = (large > 0.5) & (large < 2)
    ratio = divide(small, tl.where((large > 0) & (large < float("inf")), large, 1.0))
    ratio = tl.where(large < float("inf"), ratio, 0.0)
    square = tl.where(near, (large - 1) * (large + 1) + small * small, ratio * ratio)
    size = tl.where(near, 0.0, tl.log(large)) + 0.5 * log1p(square)
    size = tl.where(((a != a) | (b != b)) & (large < float("inf")), float("nan"), size)
    return size, arctangent_of(b, a)


def wrapper(self, *, out=None):
    if self.is_complex():
        return complex_elementwise(complex_log, self, dtype=self.dtype, out=out)
    return elementwise(log_of, self, to_float=True, out=out)
