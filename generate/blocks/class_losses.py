"""Checks and reductions for losses that compare class scores with class numbers.

Used by the kernels of nll_loss2d, multi_margin_loss and multilabel_margin_loss, and their gradients.
"""

import torch
import triton
import triton.language as tl
from blocks.limits import INT32_MAX
from blocks.losses import mean_of, sum_of
from blocks.offsets import coalesce, plain, reach, stride_hint
from blocks.reduction import reduce
from blocks.types import identical_dtypes

MANY_PIXELS = 4096  # pixels from which a kernel variant for aligned strides pays off


def expect_pixels(x, target, weight):
    """Raise RuntimeError unless scores are [N, C, H, W], classes [N, H, W] and weights [C]."""
    if x.dim() != 4 or target.dim() != 3 or target.shape != x.select(1, 0).shape:
        raise RuntimeError(
            f"expected scores [N, C, H, W] and targets [N, H, W], got {tuple(x.shape)} and {tuple(target.shape)}"
        )
    expect_classes(x, target, weight, x.shape[1])


def pixel_walk(x, target):
    """Return how to step through the pixels of scores and targets: (shape, strides, hints) for `strided`."""
    shape, strides = coalesce([x.select(1, 0), target, target.new_empty(target.shape)])
    hints = tuple([stride_hint(shape, s, target.numel() >= MANY_PIXELS) for s in strides])
    steps = tuple([tuple([plain(k) for k in s]) if shape else () for s in strides])
    return tuple([plain(k) for k in shape]), steps, hints


def are_wide(n, *tensors):
    """Return True if offsets need 64 bits, either in these tensors or in n elements and one more block."""
    # 4096: a margin for one more block
    return max([n, *[reach(t.shape, [t.stride()]) for t in tensors]]) > INT32_MAX - 4096


def expect_rows(x, target, weight=None):
    """Return scores [N, C], [C] or [] as [N, C]; raise RuntimeError unless they fit the int64 targets."""
    if x.dim() > 2 or (x.dim() and x.shape[-1] == 0):
        raise RuntimeError(f"scores must be [N, C] or [C] with C > 0, got {tuple(x.shape)}")
    rows = x if x.dim() == 2 else x.view(1, 1) if x.dim() == 0 else x.unsqueeze(0)
    expect_classes(x, target, weight, rows.shape[1])
    return rows


def expect_class_of_row(x, target, weight):
    """Return (scores, targets) as [N, C] and [N], for targets [N], or [] for a single row."""
    rows = expect_rows(x, target, weight)
    if target.dim() > 1 or target.numel() != rows.shape[0]:
        raise RuntimeError(
            f"targets {tuple(target.shape)} do not fit scores {tuple(x.shape)}: expected one class a row"
        )
    return rows, target.view(rows.shape[0])


def expect_classes_of_rows(x, target):
    """Return (scores, targets), both as [N, C], for targets with the same element count and rows."""
    rows = expect_rows(x, target)
    fits = target.shape == x.shape if x.dim() == 2 else target.dim() < 2 and target.numel() == rows.shape[1]
    if not fits:
        raise RuntimeError(f"targets {tuple(target.shape)} do not fit scores {tuple(x.shape)}")
    return rows, target if target.dim() == 2 else target.view(1, 1) if target.dim() == 0 else target.unsqueeze(0)


def row_gradient(grad, rows, reduction):
    """Return the gradient of each row's loss as [N].

    A reduced loss has a single gradient, which is expanded to all rows, and so has a loss without dimensions.
    """
    alone = reduction != 0 or grad.dim() == 0
    if alone and grad.numel():
        return grad.view(-1).narrow(0, 0, 1).expand(rows)
    if alone or grad.dim() != 1 or grad.shape[0] != rows:
        raise RuntimeError(f"gradient {tuple(grad.shape)} does not fit {rows} losses")
    return grad


def row_tile(classes):
    """Return BLOCK_M and BLOCK_N for rows with this many classes."""
    return (32, 64) if classes <= 64 else (2, 1024)  # 2,048 elements; up to 64 classes a row takes one step


def expect_classes(x, target, weight, classes):
    """Raise unless target is int64 and weight is None or [classes] with the dtype of x."""
    if target.dtype != torch.int64:
        raise RuntimeError(f"class targets must be int64, got {target.dtype}")
    if weight is None:
        return
    identical_dtypes(x, weight)
    if weight.numel() != classes:
        raise RuntimeError(f"expected a weight for each class ({classes}), got {weight.numel()}")
    if weight.dim() != 1:
        raise NotImplementedError(f"weights must have one dimension, got {tuple(weight.shape)}")


@triton.jit
def itself(x):
    """Return x."""
    return x


def total_of(losses, reduction, dtype):
    """Return the mean (reduction 1) or the sum (reduction 2) of the rows' losses."""
    finish = mean_of if reduction == 1 else sum_of
    return reduce("sum", [losses], None, dtype=dtype, common=losses.dtype, map=itself, finish=finish)


@triton.jit
def listed(target_ptr, step, classes, INDEX: tl.constexpr, BLOCK: tl.constexpr):
    """Return the number of targets in a row before the first negative one (multi-label margin loss)."""
    ends = tl.full([BLOCK], 0, INDEX) + classes
    for first in range(0, classes, BLOCK):
        at = first + tl.arange(0, BLOCK).to(INDEX)
        target = tl.load(target_ptr + at * step, mask=at < classes, other=0)
        ends = tl.minimum(ends, tl.where(target < 0, at, classes))
    return tl.min(ends, 0)
