"""aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor

With d = |x - target|, the loss is d^2 / (2 * beta) if d < beta, else d - beta / 2.
"""

import triton
import triton.language as tl
from blocks.losses import loss

OVERLOADS = ("aten::smooth_l1_loss",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def smooth_l1(x, target, size):
    d = tl.abs(x - target)
    return tl.where(d < size, 0.5 * d * d / tl.where(size == 0, 1.0, size), (d - 0.5 * size))


def wrapper(self, target, reduction=1, beta=1.0):
    if not beta >= 0:
        raise RuntimeError(f"beta must be >= 0, got {beta}")
    return loss(smooth_l1, (self, target), reduction, (beta,))
