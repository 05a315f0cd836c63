"""aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor

A sixth of grad, where ATen takes the sixth that fp32 holds in every type.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::hardsigmoid_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def hardsigmoid_backward(grad, x):
    return tl.where((x > -3) & (x < 3), grad * 0.1666666716337204, 0.0)


def wrapper(grad_output, self, *, out=None):
    return elementwise(hardsigmoid_backward, grad_output, self, out=out)
