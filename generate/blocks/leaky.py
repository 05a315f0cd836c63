"""Gradients of leaky rectifiers."""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

__all__ = ["leaky_backward"]


@triton.jit
def leaky_gradient(x, grad, slope):
    return tl.where(x > 0, grad, grad * slope)


def leaky_backward(grad, x, slope, is_result, out=None):
    """Compute the gradient of leaky ReLU from its input or its result, which has the same sign.

    Raises RuntimeError if x is the result and the slope is negative, because the result does not determine
    the input.
    """
    if is_result and slope < 0:
        raise RuntimeError(f"leaky_relu with negative slope {slope} has no inverse: its gradient needs the input")
    return elementwise(leaky_gradient, x, grad, numbers=(slope,), out=out)
