"""aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)

A row of targets lists classes up to the first -1. The loss is the sum of max(0, 1 - x[t] + x[c]) over the listed t and
the classes c that are not among them, divided by the number of classes; is_target is 1 for those that are. A program
makes a row's loss; the mean (1) or sum (2) of these is a reduction of its own.
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
        found = tl.zeros([BLOCK], tl.int32)
        for first in range(0, end, BLOCK):
            at = first + tl.arange(0, BLOCK).to(INDEX)
            target = tl.load(target_ptr + at * target_step, mask=at < end, other=-1)
            found += tl.sum((target[:, None] == cols[None, :]).to(tl.int32), 0)
        tl.store(is_target_ptr + row * classes + cols, (found > 0).to(OPMATH), mask=cols < classes)
        others = (cols < classes) & (found == 0)
        x = tl.load(x_ptr + cols * step, mask=others, other=0)
        for first in range(0, end, BLOCK):
            at = first + tl.arange(0, BLOCK).to(INDEX)
            target = tl.load(target_ptr + at * target_step, mask=at < end, other=-1)
            there = (target >= 0) & (target < classes)
            own = tl.load(x_ptr + target * step, mask=there, other=0)
            z = 1 - own[:, None] + x[None, :]
            acc += tl.where(there[:, None] & others[None, :] & (z > 0), z, 0)
    tl.store(out_ptr + row, tl.sum(tl.sum(acc, 1), 0) / classes)


def wrapper(self, target, reduction):
    x, targets = expect_classes_of_rows(self, target)
    n, classes = x.shape
    reduction = reduction if target.dim() == 2 else 2  # of one loss
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
