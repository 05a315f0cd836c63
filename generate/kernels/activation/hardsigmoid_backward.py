"""aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor

The gradient is grad / 6 for -3 < x < 3, and 0 elsewhere. Like ATen, the kernel multiplies by 1/6 rounded to
fp32, for every dtype.
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
