"""aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor

With d = |x - target|, the loss is d^2 / 2 if d <= delta, else delta * (d - delta / 2).
"""

import triton
import triton.language as tl
from blocks.losses import loss

OVERLOADS = ("aten::huber_loss",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def huber(x, target, size):
    d = tl.abs(x - target)
    return tl.where(d <= size, 0.5 * d * d, size * (d - 0.5 * size))


def wrapper(self, target, reduction=1, delta=1.0):
    if delta <= 0:
        raise RuntimeError(f"delta must be positive, got {delta}")
    return loss(huber, (self, target), reduction, (delta,))
