"""aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor

NaN inputs return NaN.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::hardtanh",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def hardtanh(x, low, high):
    x = tl.where((x >= low) | (x != x), x, low)
    return tl.where((x <= high) | (x != x), x, high)


def wrapper(self, min_val=-1, max_val=1, *, out=None):
    if not self.dtype.is_signed and int(min_val) < 0:
        raise RuntimeError(f"hardtanh of unsigned integers needs min_val >= 0, got {min_val}")
    return elementwise(hardtanh, self, numbers=(min_val, max_val), out=out)
