"""aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor"""

import triton
import triton.language as tl
from blocks.losses import loss_backward

OVERLOADS = ("aten::smooth_l1_loss_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def smooth_l1_backward(grad, x, target, n, size):
    d = x - target
    slope = tl.where(d <= -size, -1.0, tl.where(d >= size, 1.0, d / tl.where(size == 0, 1.0, size)))
    return slope / n * grad


def wrapper(grad_output, self, target, reduction, beta):
    return loss_backward(smooth_l1_backward, grad_output, (self, target), reduction, (beta,))
