"""aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import rounded

OVERLOADS = ("aten::hardshrink_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def hardshrink_backward(grad, x, size):
    return tl.where((x >= -size) & (x <= size), 0.0, grad)


def wrapper(grad_out, self, lambd, *, out=None):
    return elementwise(hardshrink_backward, grad_out, self, numbers=(rounded(lambd, self.dtype),), out=out)
