"""aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::_prelu_kernel_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def prelu_backward(x, weight, grad):
    return tl.where(x > 0, grad, grad * weight), tl.where(x > 0, 0.0, grad * x)


def wrapper(grad_output, self, weight):
    return elementwise(prelu_backward, self, weight, grad_output, dtype=(self.dtype, self.dtype))
