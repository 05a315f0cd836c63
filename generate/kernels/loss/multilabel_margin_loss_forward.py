"""aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)

Each row in `target` lists classes up to the first -1. The loss is the sum of max(0, 1 - x[t] + x[c]) over the
listed t and the unlisted classes c, divided by the class count. is_target is 1 for listed classes and 0 for
the others. One program instance computes one row's loss, and a separate reduction the mean (1) or sum (2).
"""

import torch
import triton
import triton.language as tl
from blocks.class_losses import are_wide, expect_classes_of_rows, listed, total_of
from blocks.offsets import plain, plain_value
from blocks.types import compute_types

OVERLOADS = ("aten::multilabel_margin_loss_forward",)
DTYPES = ("float32", "float64")


@triton.jit
def kernel_multilabel_margin(
    x_ptr,
    target_ptr,
    out_ptr,
    is_target_ptr,
    classes,
    x_strides,
    target_strides,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the loss for one row, in tiles of BLOCK listed by BLOCK unlisted classes.

    Integer arguments are encoded by `plain`.

    Args:
        x_ptr: [rows, classes], read.
        target_ptr: [rows, classes] int64, read.
        out_ptr: [rows], written.
        is_target_ptr: [rows, classes], contiguous, written.
        classes: Number of classes.
        x_strides: The two strides of x.
        target_strides: The two strides of the targets.
        OPMATH: Triton type of the sums.
        WIDE: Compute offsets in 64 bits.
        BLOCK: Rows and columns of a tile (listed by unlisted classes).
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    classes = plain_value(classes)
    row = tl.program_id(0).to(INDEX)
    x_ptr += row * plain_value(x_strides[0])
    target_ptr += row * plain_value(target_strides[0])
    step, target_step = plain_value(x_strides[1]), plain_value(target_strides[1])
    end = listed(target_ptr, target_step, classes, INDEX, BLOCK)
    acc = tl.zeros([BLOCK, BLOCK], OPMATH)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(INDEX)
        times_listed = tl.zeros([BLOCK], tl.int32)
        for first in range(0, end, BLOCK):
            at = first + tl.arange(0, BLOCK).to(INDEX)
            target = tl.load(target_ptr + at * target_step, mask=at < end, other=-1)
            times_listed += tl.sum((target[:, None] == cols[None, :]).to(tl.int32), 0)
        tl.store(is_target_ptr + row * classes + cols, (times_listed > 0).to(OPMATH), mask=cols < classes)
        unlisted = (cols < classes) & (times_listed == 0)
        x = tl.load(x_ptr + cols * step, mask=unlisted, other=0)
        for first in range(0, end, BLOCK):
            at = first + tl.arange(0, BLOCK).to(INDEX)
            target = tl.load(target_ptr + at * target_step, mask=at < end, other=-1)
            is_class = (target >= 0) & (target < classes)
            target_score = tl.load(x_ptr + target * step, mask=is_class, other=0)
            z = 1 - target_score[:, None] + x[None, :]
            acc += tl.where(is_class[:, None] & unlisted[None, :] & (z > 0), z, 0)
    tl.store(out_ptr + row, tl.sum(tl.sum(acc, 1), 0) / classes)


def wrapper(self, target, reduction):
    x, targets = expect_classes_of_rows(self, target)
    n, classes = x.shape
    reduction = reduction if target.dim() == 2 else 2  # a single loss is never left unreduced
    losses = torch.empty(n, dtype=self.dtype, device=self.device)
    is_target = torch.empty(target.shape, dtype=self.dtype, device=self.device)
    kernel_multilabel_margin[(n,)](
        x,
        targets,
        losses,
        is_target,
        plain(classes),
        (plain(x.stride(0)), plain(x.stride(1))),
        (plain(targets.stride(0)), plain(targets.stride(1))),
        OPMATH=compute_types(self.dtype)[1],
        WIDE=are_wide(is_target.numel(), x, targets),
        BLOCK=32,
    )
    return losses if reduction == 0 else total_of(losses, reduction, self.dtype), is_target
