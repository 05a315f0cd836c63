"""aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor

Computes log(1 + e^(-target * x)).
"""

import triton
import triton.language as tl
from blocks.functions import log1p
from blocks.losses import loss

OVERLOADS = ("aten::soft_margin_loss",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def soft_margin(x, target):
    return log1p(tl.exp(-target * x))


def wrapper(self, target, reduction=1):
    return loss(soft_margin, (self, target), reduction)
