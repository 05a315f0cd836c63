"""aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor

The gradient is grad / (1 + e^x), computed from e^-|x|. Some devices keep e^-|x| in the forward pass's buffer;
if the buffer is empty, the kernel recomputes it.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::log_sigmoid_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def log_sigmoid_backward_of(grad, x, e):
    rest = e / (1 + e)
    return grad * tl.where(x < 0, 1 - rest, rest)


@triton.jit
def log_sigmoid_backward(grad, x):
    return log_sigmoid_backward_of(grad, x, tl.exp(-tl.abs(x)))


def wrapper(grad_output, self, buffer, *, out=None):
    if buffer.numel() == 0:
        return elementwise(log_sigmoid_backward, grad_output, self, out=out)
    return elementwise(log_sigmoid_backward_of, grad_output, self, buffer, out=out)
