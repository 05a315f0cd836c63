"""aten::sqrt(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.complex_numbers import complex_elementwise
from blocks.elementwise import elementwise
from blocks.functions import with_sign

OVERLOADS = ("aten::sqrt",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


@triton.jit
def complex_root(a, b):
    """Return the complex square root whose real part is not negative.

    Both parts are first divided by the larger magnitude, to avoid overflow.
    """
    size = tl.maximum(tl.abs(a), tl.abs(b))
    size = tl.where((size > 0) & (size < float("inf")), size, 1.0)
    x, y = divide(tl.abs(a), size), divide(b, size)
    long = root(size) * root(0.5 * (x + root(x * x + y * y)))
    long = tl.where((x == float("inf")) | (tl.abs(y) == float("inf")), float("inf"), long)
    short = tl.where(long == 0, b, divide(b, 2 * tl.where(long == 0, 1.0, long)))
    short = tl.where(tl.abs(b) == float("inf"), b, short)
    return tl.where(a < 0, tl.abs(short), long), tl.where(a < 0, with_sign(long, b), short)


def wrapper(self, *, out=None):
    if self.is_complex():
        return complex_elementwise(complex_root, self, dtype=self.dtype, out=out)
    return elementwise(root, self, to_float=True, out=out)
