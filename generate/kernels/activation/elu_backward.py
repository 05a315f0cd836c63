"""aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor
    self_or_result) -> Tensor

The gradient is computed from the input x, or from the result y: alpha * scale * e^(x * input_scale) = y +
alpha * scale if x <= 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::elu_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def elu_backward(grad, x, alpha, scale, input_scale):
    slope = input_scale * (alpha * scale) * tl.exp(x * input_scale)
    return grad * tl.where(x <= 0, slope, scale)


@triton.jit
def elu_backward_of_result(grad, y, alpha, scale, input_scale):
    return grad * tl.where(y <= 0, input_scale * (y + alpha * scale), scale)


def wrapper(grad_output, alpha, scale, input_scale, is_result, self_or_result, *, out=None):
    if is_result and alpha < 0:
        raise RuntimeError(f"elu with negative alpha {alpha} has no inverse: its gradient needs the input")
    function = elu_backward_of_result if is_result else elu_backward
    return elementwise(function, grad_output, self_or_result, numbers=(alpha, scale, input_scale), out=out)
