"""aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int
    reduction=1) -> Tensor

The loss for a row with target class t is weight[t] / C * sum of max(0, margin - x[t] + x[c])^p over the
classes c other than t. p is 1 or 2. The kernel computes the rows' losses, and a separate reduction their mean
(1) or sum (2).
"""

import torch
import triton
import triton.language as tl
from blocks.class_losses import are_wide, expect_class_of_row, row_tile, total_of
from blocks.offsets import plain, plain_value
from blocks.types import compute_types, number_argument, number_value

OVERLOADS = ("aten::multi_margin_loss",)
DTYPES = ("float32", "float64")


@triton.jit
def kernel_multi_margin(
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    sizes,
    x_strides,
    target_stride,
    weight_stride,
    margin,
    SQUARE: tl.constexpr,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute the losses for BLOCK_M rows, BLOCK_N classes at a time.

    Integer arguments are encoded by `plain`.

    Args:
        x_ptr: [n, classes], read.
        target_ptr: [n] int64, read.
        weight_ptr: [classes], read, or None.
        out_ptr: [n], contiguous, written.
        sizes: (n, classes).
        x_strides: The two strides of x.
        target_stride: Stride of the targets.
        weight_stride: Stride of the weights; 0 if there are none.
        margin: The margin, encoded by `number_argument`.
        SQUARE: True if p is 2, False if it is 1.
        OPMATH: Triton type of the sums.
        WIDE: Compute offsets in 64 bits.
        BLOCK_M: Rows per program instance.
        BLOCK_N: Classes that are processed at a time.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    n, classes = plain_value(sizes[0]), plain_value(sizes[1])
    step = plain_value(x_strides[1])
    rows = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < n
    target = tl.load(target_ptr + rows * plain_value(target_stride), mask=inside, other=0)
    valid = inside & (target >= 0) & (target < classes)
    x_ptr += rows * plain_value(x_strides[0])
    above = number_value(margin, OPMATH) - tl.load(x_ptr + target * step, mask=valid, other=0)
    acc = tl.zeros([BLOCK_M, BLOCK_N], OPMATH)
    for start in range(0, classes, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(INDEX)
        other = valid[:, None] & (cols < classes)[None, :] & (cols[None, :] != target[:, None])
        z = above[:, None] + tl.load(x_ptr[:, None] + (cols * step)[None, :], mask=other, other=0)
        z = tl.where(other & (z > 0), z, 0)
        acc += z * z if SQUARE else z
    loss = tl.sum(acc, 1)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + target * plain_value(weight_stride), mask=valid, other=0)
        loss = tl.where(loss > 0, loss * weight, 0)
    tl.store(out_ptr + rows, loss / classes, mask=inside)


def wrapper(self, target, p=1, margin=1, weight=None, reduction=1):
    x, classes = expect_class_of_row(self, target, weight)
    if int(p) not in (1, 2):
        raise RuntimeError(f"p must be 1 or 2, got {p}")
    n, class_count = x.shape
    losses = torch.empty(target.shape if reduction == 0 else n, dtype=self.dtype, device=self.device)
    BLOCK_M, BLOCK_N = row_tile(class_count)
    kernel_multi_margin[(triton.cdiv(n, BLOCK_M),)](
        x,
        classes,
        weight,
        losses,
        (plain(n), plain(class_count)),
        (plain(x.stride(0)), plain(x.stride(1))),
        plain(classes.stride(0)),
        plain(0 if weight is None else weight.stride(0)),
        number_argument(margin, self.dtype),
        SQUARE=int(p) == 2,
        OPMATH=compute_types(self.dtype)[1],
        WIDE=are_wide(n, x, classes),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
    )
    return losses if reduction == 0 else total_of(losses, reduction, self.dtype)
