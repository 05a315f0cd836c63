"""aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::hardswish_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def hardswish_backward(grad, x):
    return tl.where(x <= -3, 0.0, tl.where(x < 3, grad * (x / 3 + 0.5), grad))


def wrapper(grad_output, self):
    return elementwise(hardswish_backward, grad_output, self)
