"""aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::hardtanh_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def hardtanh_backward(grad, x, low, high):
    return tl.where((x <= low) | (x >= high), 0.0, grad)


def wrapper(grad_output, self, min_val, max_val, *, out=None):
    return elementwise(hardtanh_backward, grad_output, self, numbers=(min_val, max_val), out=out)
