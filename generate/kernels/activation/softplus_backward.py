"""aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::softplus_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def softplus_backward(grad, x, beta, threshold):
    scaled = x * beta
    e = tl.exp(tl.where(scaled > threshold, 0.0, scaled))
    return tl.where(scaled > threshold, grad, grad * e / (e + 1))


def wrapper(grad_output, self, beta, threshold, *, out=None):
    return elementwise(softplus_backward, grad_output, self, numbers=(beta, threshold), out=out)
