"""aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::silu_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def silu_backward(grad, x):
    s = 1 / (1 + tl.exp(-x))
    return grad * s * (1 + x * (1 - s))


def wrapper(grad_output, self, *, out=None):
    return elementwise(silu_backward, grad_output, self, out=out)
