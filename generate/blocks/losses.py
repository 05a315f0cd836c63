"""Elementwise losses of a prediction and a target: unreduced (reduction 0), their mean (1) or their sum (2)."""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.reduction import reduce
from blocks.types import common_dtype


@triton.jit
def mean_of(total, n, a=0, b=0):
    return total / n


@triton.jit
def sum_of(total, n, a=0, b=0):
    return total


def loss(function, operands, reduction, numbers=()):
    """Return function(*operands, *numbers) for each element in the broadcast operands, reduced.

    Raises RuntimeError for an unknown reduction.
    """
    if reduction == 0:
        return elementwise(function, *operands, numbers=numbers)
    if reduction not in (1, 2):
        raise RuntimeError(f"reduction must be 1 (mean) or 2 (sum), got {reduction}")
    tensors = list(torch.broadcast_tensors(*operands))
    finish = mean_of if reduction == 1 else sum_of
    return reduce("sum", tensors, None, dtype=common_dtype(*operands), map=function, finish=finish, numbers=numbers)


def loss_backward(function, grad_output, operands, reduction, numbers=()):
    """Return function(grad, *operands, n, *numbers) for each element, contiguous, in the common broadcast shape.

    n is the number of predictions (the first operand) if the loss is a mean, else 1. As in ATen, n does not
    count broadcast copies.
    """
    like = operands[0]
    n = max(like.numel(), 1) if reduction == 1 else 1
    shape = torch.broadcast_shapes(grad_output.shape, *[t.shape for t in operands])
    out = torch.empty(shape, dtype=like.dtype, device=like.device)
    return elementwise(function, grad_output, *operands, numbers=(n, *numbers), common=like.dtype, out=out)
