"""aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::leaky_relu_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def leaky_relu_backward(x, grad, slope):
    return tl.where(x > 0, grad, grad * slope)


def wrapper(grad_output, self, negative_slope, self_is_result, *, out=None):
    if self_is_result and negative_slope < 0:
        raise RuntimeError(f"leaky_relu with slope {negative_slope} < 0 has no inverse: its gradient needs the input")
    return elementwise(leaky_relu_backward, self, grad_output, numbers=(negative_slope,), out=out)
