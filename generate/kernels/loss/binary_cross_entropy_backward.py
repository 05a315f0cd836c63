"""aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int
    reduction=1) -> Tensor

Computes grad * weight * (x - t) / max((1 - x) * x, 1e-12). For the mean (1) it is divided by the element
count. ATen uses 1e-12 rounded to fp32, for every dtype.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import identical_dtypes

OVERLOADS = ("aten::binary_cross_entropy_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def bce_backward(grad, x, target, weight, n):
    slope = (1 - x) * x
    least = 9.999999960041972e-13
    return grad / n * (x - target) / tl.where(slope < least, least, slope) * weight


def paired(t, like):
    """Return t in the shape of `like`, as ATen on the CPU pairs them: [5, 1] with [1, 5] are five pairs."""
    return t if t.shape == like.shape else t.squeeze().expand(like.squeeze().shape).view(like.shape)


def wrapper(grad_output, self, target, weight=None, reduction=1):
    identical_dtypes(self, grad_output, target, *([] if weight is None else [weight]))
    grad = paired(grad_output, self) if grad_output.dim() else grad_output
    operands = grad, self, paired(target, self), 1.0 if weight is None else weight
    numbers = (self.numel() if reduction == 1 else 1,)
    return elementwise(bce_backward, *operands, numbers=numbers, common=self.dtype, out=torch.empty_like(self))
