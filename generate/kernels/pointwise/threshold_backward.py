"""aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor

Returns the gradient if self is NaN or greater than threshold, else 0. Threshold is first rounded to the
tensor's dtype.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import rounded

OVERLOADS = ("aten::threshold_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def threshold_backward(x, grad, threshold):
    return tl.where(x <= threshold, tl.zeros_like(grad), grad)


def wrapper(grad_output, self, threshold, *, out=None):  # same operand order as ATen: it decides the layout
    return elementwise(threshold_backward, self, grad_output, numbers=(rounded(threshold, self.dtype),), out=out)
