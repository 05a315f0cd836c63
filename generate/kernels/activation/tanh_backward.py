"""aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::tanh_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def tanh_backward(grad, y):
    return grad * (1 - y * y)


def wrapper(grad_output, output, *, out=None):
    return elementwise(tanh_backward, grad_output, output, out=out)
