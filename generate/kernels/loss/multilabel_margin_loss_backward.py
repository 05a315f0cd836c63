"""aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor
    is_target) -> Tensor

Let t be a listed class, and c a class that is not a target (see multilabel_margin_loss_forward). Each pair
with 1 - x[t] + x[c] > 0 adds 1 / C to the gradient at c and -1 / C at t. For the mean (1), both are divided
by the row count. Each class gathers its own contributions, without atomics.
"""

import torch
import triton
import triton.language as tl
from blocks.class_losses import are_wide, expect_classes_of_rows, listed, row_gradient
from blocks.offsets import plain, plain_value
from blocks.types import compute_types, identical_dtypes

OVERLOADS = ("aten::multilabel_margin_loss_backward",)
DTYPES = ("float32", "float64")


@triton.jit
def kernel_multilabel_margin_backward(
    grad_ptr,
    x_ptr,
    target_ptr,
    is_target_ptr,
    out_ptr,
    classes,
    share,
    grad_stride,
    x_strides,
    target_strides,
    is_target_strides,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradients for one row, BLOCK classes at a time.

    Integer arguments are encoded by `plain`.

    Args:
        grad_ptr: [rows], read.
        x_ptr: [rows, classes], read.
        target_ptr: [rows, classes] int64, read.
        is_target_ptr: [rows, classes], read; not 0 for listed classes.
        out_ptr: [rows, classes], contiguous, written.
        classes: Number of classes.
        share: Divisor for the gradient.
        grad_stride: Stride of the gradient.
        x_strides: The two strides of x.
        target_strides: The two strides of the targets.
        is_target_strides: The two strides of is_target.
        OPMATH: Triton type of the gradient.
        WIDE: Compute offsets in 64 bits.
        BLOCK: Classes that are processed at a time.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    classes = plain_value(classes)
    row = tl.program_id(0).to(INDEX)
    x_ptr += row * plain_value(x_strides[0])
    target_ptr += row * plain_value(target_strides[0])
    is_target_ptr += row * plain_value(is_target_strides[0])
    step, target_step, mark_step = (
        plain_value(x_strides[1]),
        plain_value(target_strides[1]),
        plain_value(is_target_strides[1]),
    )
    grad = tl.load(grad_ptr + row * plain_value(grad_stride)) / plain_value(share)
    end = listed(target_ptr, target_step, classes, INDEX, BLOCK)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(INDEX)
        x = tl.load(x_ptr + cols * step, mask=cols < classes, other=0)
        other = tl.load(is_target_ptr + cols * mark_step, mask=cols < classes, other=1) == 0
        pushed, times = tl.zeros([BLOCK], tl.int32), tl.zeros([BLOCK], tl.int32)
        for first in range(0, end, BLOCK):
            at = first + tl.arange(0, BLOCK).to(INDEX)
            target = tl.load(target_ptr + at * target_step, mask=at < end, other=-1)
            is_class = (target >= 0) & (target < classes)
            target_score = tl.load(x_ptr + target * step, mask=is_class, other=0)
            near = is_class[:, None] & other[None, :] & (1 - target_score[:, None] + x[None, :] > 0)
            pushed += tl.sum(near.to(tl.int32), 0)
            times += tl.sum((target[:, None] == cols[None, :]).to(tl.int32), 0)
        pulled = tl.zeros([BLOCK], tl.int32)
        if tl.max(times, 0) > 0:
            for first in range(0, classes, BLOCK):
                at = first + tl.arange(0, BLOCK).to(INDEX)
                rival = tl.load(x_ptr + at * step, mask=at < classes, other=0)
                counts = tl.load(is_target_ptr + at * mark_step, mask=at < classes, other=1) == 0
                near = counts[:, None] & (1 - x[None, :] + rival[:, None] > 0)
                pulled += tl.sum(near.to(tl.int32), 0)
        count = pushed.to(OPMATH) - times.to(OPMATH) * pulled.to(OPMATH)
        tl.store(out_ptr + row * classes + cols, count * grad, mask=cols < classes)


def wrapper(grad_output, self, target, reduction, is_target):
    x, targets = expect_classes_of_rows(self, target)
    identical_dtypes(self, grad_output, is_target)
    if is_target.shape != target.shape:
        raise RuntimeError(f"is_target {tuple(is_target.shape)} does not match target {tuple(target.shape)}")
    n, classes = x.shape
    grad, marks = row_gradient(grad_output, n, reduction), is_target.view(targets.shape)
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    kernel_multilabel_margin_backward[(n,)](
        grad,
        x,
        targets,
        marks,
        out,
        plain(classes),
        plain(n * classes if reduction == 1 else classes),
        plain(grad.stride(0)),
        (plain(x.stride(0)), plain(x.stride(1))),
        (plain(targets.stride(0)), plain(targets.stride(1))),
        (plain(marks.stride(0)), plain(marks.stride(1))),
        OPMATH=compute_types(self.dtype)[1],
        WIDE=are_wide(out.numel(), x, targets, marks, grad),
        BLOCK=32,
    )
    return out
