"""aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor
    output, Tensor total_weight)

A pixel's loss is -weight[target] * self[n, target, h, w], in fp32 (fp64 for fp64). For mean (1) and sum (2),
each program instance sums its pixels' losses and weights, and a reduction adds up these sums. The mean is NaN
if all pixels are ignored.
"""

import torch
import triton
import triton.language as tl
from blocks.class_losses import are_wide, expect_pixels, pixel_walk
from blocks.offsets import plain, plain_value, strided
from blocks.reduction import reduce
from blocks.types import compute_types

OVERLOADS = ("aten::nll_loss2d_forward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def kernel_pixels(
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    total_ptr,
    n,
    classes,
    steps,
    ignore_index,
    shape,
    strides,
    OPMATH: tl.constexpr,
    REDUCED: tl.constexpr,
    HINTS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the losses for BLOCK pixels, or their sum.

    Args:
        x_ptr: [N, classes, H, W], read.
        target_ptr: [N, H, W] int64, read.
        weight_ptr: [classes], read, or None.
        out_ptr: [n] losses, written. If REDUCED, [programs], the loss sums.
        total_ptr: One element, a total weight of 0, written. If REDUCED, [programs], the weight sums.
        n: Number of pixels, encoded by `plain`.
        classes: Number of classes, encoded by `plain`.
        steps: Stride between classes, for scores and for weights, encoded by `plain`.
        ignore_index: Class number of pixels that are ignored; not encoded.
        shape: Sizes of the pixel dimensions, from `pixel_walk`.
        strides: Strides of scores and targets in these dimensions, from `pixel_walk`.
        OPMATH: Triton type of the losses and sums.
        REDUCED: Store a sum per program instance instead of the losses.
        HINTS: Stride hints of scores and targets, from `pixel_walk`.
        WIDE: Compute offsets in 64 bits.
        BLOCK: Pixels per program instance.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    inside = i < plain_value(n)
    target = tl.load(target_ptr + strided(i, shape, strides[1], HINTS[1]), mask=inside, other=0)
    valid = inside & (target != ignore_index) & (target >= 0) & (target < plain_value(classes))
    offset = strided(i, shape, strides[0], HINTS[0]) + target * plain_value(steps[0])
    x = tl.load(x_ptr + offset, mask=valid, other=0).to(OPMATH)
    weight = tl.where(valid, tl.full([BLOCK], 1, OPMATH), 0)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + target * plain_value(steps[1]), mask=valid, other=0).to(OPMATH)
    loss = tl.where(valid, -x * weight, 0)
    if REDUCED:
        tl.store(out_ptr + tl.program_id(0), tl.sum(loss, 0))
        tl.store(total_ptr + tl.program_id(0), tl.sum(weight, 0))
    else:
        tl.store(out_ptr + i, loss.to(out_ptr.dtype.element_ty), mask=inside)
        if tl.program_id(0) == 0:
            tl.store(total_ptr, tl.full([], 0, total_ptr.dtype.element_ty))


@triton.jit
def loss_and_weight(loss, weight):
    return loss, weight


@triton.jit
def mean_and_weight(loss, weight, n):
    return loss / weight, weight


@triton.jit
def sum_and_weight(loss, weight, n):
    return loss, weight


def wrapper(self, target, weight, reduction, ignore_index):
    expect_pixels(self, target, weight)
    n, programs = target.numel(), max(triton.cdiv(target.numel(), 1024), 1)
    sum_dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
    if reduction == 0:
        out, total = torch.empty(target.shape, dtype=self.dtype, device=self.device), self.new_empty(())
    else:
        out, total = [torch.empty(programs, dtype=sum_dtype, device=self.device) for _ in range(2)]
    shape, strides, hints = pixel_walk(self, target)
    kernel_pixels[(programs,)](
        self,
        target,
        weight,
        out,
        total,
        plain(n),
        plain(self.shape[1]),
        (plain(self.stride(1)), plain(0 if weight is None else weight.stride(0))),
        ignore_index,
        shape,
        strides,
        OPMATH=compute_types(sum_dtype)[1],
        REDUCED=reduction != 0,
        HINTS=hints,
        WIDE=are_wide(n, self, target),
        BLOCK=1024,
    )
    if reduction == 0:
        return out, total
    finish = mean_and_weight if reduction == 1 else sum_and_weight
    dtypes = self.dtype, self.dtype
    return reduce("sums", [out, total], None, dtype=dtypes, map=loss_and_weight, finish=finish, common=sum_dtype)
