"""aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int
    reduction=1) -> Tensor

Computes ((1 - t) * x + (1 + (p - 1) * t) * log(1 + e^-x)) * weight, with p = pos_weight. To avoid overflow,
log(1 + e^-x) is computed as log(1 + e^-|x|) + max(-x, 0).
"""

import triton
import triton.language as tl
from blocks.functions import log1p
from blocks.losses import loss

OVERLOADS = ("aten::binary_cross_entropy_with_logits",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def logistic_loss(x, target):
    return (1 - target) * x + log1p(tl.exp(-tl.abs(x))) + tl.where(x < 0, -x, 0.0)


@triton.jit
def weighted_logistic_loss(x, target, weight, positive):
    softplus = log1p(tl.exp(-tl.abs(x))) + tl.where(x < 0, -x, 0.0)
    return ((1 - target) * x + (1 + (positive - 1) * target) * softplus) * weight


@triton.jit
def weighted_logistic_loss_alone(x, target, weight):
    return ((1 - target) * x + log1p(tl.exp(-tl.abs(x))) + tl.where(x < 0, -x, 0.0)) * weight


@triton.jit
def positive_logistic_loss(x, target, positive):
    softplus = log1p(tl.exp(-tl.abs(x))) + tl.where(x < 0, -x, 0.0)
    return (1 - target) * x + (1 + (positive - 1) * target) * softplus


def wrapper(self, target, weight=None, pos_weight=None, reduction=1):
    if pos_weight is None:
        function = logistic_loss if weight is None else weighted_logistic_loss_alone
    else:
        function = positive_logistic_loss if weight is None else weighted_logistic_loss
    return loss(function, [t for t in (self, target, weight, pos_weight) if t is not None], reduction)
