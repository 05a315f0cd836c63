"""aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor"""

import triton
import triton.language as tl
from blocks.losses import loss_backward

OVERLOADS = ("aten::huber_loss_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def huber_backward(grad, x, target, n, size):
    d = x - target
    slope = tl.where(d < -size, -size, tl.where(d > size, size, d))
    return slope / n * grad


def wrapper(grad_output, self, target, reduction, delta):
    return loss_backward(huber_backward, grad_output, (self, target), reduction, (delta,))
