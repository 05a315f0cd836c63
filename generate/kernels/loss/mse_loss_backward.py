"""aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor"""

import triton
from blocks.losses import loss_backward

OVERLOADS = ("aten::mse_loss_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def mse_loss_backward(grad, x, target, n):
    return 2 / n * (x - target) * grad


def wrapper(grad_output, self, target, reduction):
    return loss_backward(mse_loss_backward, grad_output, (self, target), reduction)
