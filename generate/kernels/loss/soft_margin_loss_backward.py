"""aten::soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor

Computes -target * e / (1 + e) with e = e^(-target * x), multiplied by grad. For the mean (1), it is divided
by the element count.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.losses import loss_backward

OVERLOADS = ("aten::soft_margin_loss_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def soft_margin_backward(grad, x, target, n):
    e = tl.exp(-target * x)
    return -target / n * divide(e, 1 + e) * grad


def wrapper(grad_output, self, target, reduction):
    return loss_backward(soft_margin_backward, grad_output, (self, target), reduction)
