"""aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor

Returns grad / (x * (1 - x)) if x is in [eps, 1 - eps], and 0 elsewhere. Without eps the range is [0, 1], and
the gradient is NaN elsewhere.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise

OVERLOADS = ("aten::logit_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def logit_backward(grad, x):
    return tl.where((x < 0) | (x > 1), float("nan"), divide(grad, x * (1 - x)))


@triton.jit
def logit_backward_between(grad, x, low, high):
    return tl.where((x < low) | (x > high), 0.0, divide(grad, x * (1 - x)))


def wrapper(grad_output, self, eps=None, *, out=None):
    if eps is None:
        return elementwise(logit_backward, grad_output, self, out=out)
    return elementwise(logit_backward_between, grad_output, self, numbers=(eps, 1 - eps), out=out)
