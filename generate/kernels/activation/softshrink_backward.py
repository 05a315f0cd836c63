"""aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import rounded

OVERLOADS = ("aten::softshrink_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def softshrink_backward(grad, x, size):
    return tl.where((x < -size) | (x > size) | (x != x), grad, 0.0)


def wrapper(grad_output, self, lambd, *, out=None):
    return elementwise(softshrink_backward, grad_output, self, numbers=(rounded(lambd, self.dtype),), out=out)
