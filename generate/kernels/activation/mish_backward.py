"""aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor

Returns grad * (t + x * s * (1 - t^2)) with t = tanh(log(1 + e^x)) and s = sigmoid(x).
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.types import identical_dtypes

OVERLOADS = ("aten::mish_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def mish_backward(grad, x):
    e = tl.exp(tl.where(x > 20, 20.0, x))
    n = e * (e + 2)
    t = divide(n, n + 2)
    s = divide(e, 1 + e)
    return grad * (t + x * s * (1 - t * t))


def wrapper(grad_output, self):
    identical_dtypes(self, grad_output)
    return elementwise(mish_backward, grad_output, self)
