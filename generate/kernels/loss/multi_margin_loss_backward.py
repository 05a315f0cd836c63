"""aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor?
    weight=None, int reduction=1) -> Tensor

Let t be the row's target class, and z = margin - x[t] + x[c]. For another class c, the gradient is weight[t]
/ C if z > 0, multiplied by 2 * z for p = 2, and 0 if z <= 0. For class t, it is minus the sum of the others.
For the mean (1), all are divided by the row count.
"""

import torch
import triton
import triton.language as tl
from blocks.class_losses import are_wide, expect_class_of_row, row_gradient, row_tile
from blocks.offsets import plain, plain_value
from blocks.types import compute_types, identical_dtypes, number_argument, number_value

OVERLOADS = ("aten::multi_margin_loss_backward",)
DTYPES = ("float32", "float64")


@triton.jit
def slopes(x_ptr, cols, step, above, weight, target, valid, classes, SQUARE: tl.constexpr):
    """Return the derivatives of a row's weighted sum with respect to the classes other than its target."""
    other = valid[:, None] & (cols < classes)[None, :] & (cols[None, :] != target[:, None])
    z = above[:, None] + tl.load(x_ptr[:, None] + (cols * step)[None, :], mask=other, other=0)
    return tl.where(other & (z > 0), 2 * z * weight[:, None] if SQUARE else weight[:, None], 0)


@triton.jit
def kernel_multi_margin_backward(
    grad_ptr,
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    sizes,
    x_strides,
    steps,
    share,
    margin,
    SQUARE: tl.constexpr,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute the gradients for BLOCK_M rows in two passes over the classes.

    The first pass sums the derivatives for the target class, and the second one stores all gradients. Integer
    arguments are encoded by `plain`.

    Args:
        grad_ptr: [n], read.
        x_ptr: [n, classes], read.
        target_ptr: [n] int64, read.
        weight_ptr: [classes], read, or None.
        out_ptr: [n, classes], contiguous, written.
        sizes: (n, classes).
        x_strides: The two strides of x.
        steps: Strides of gradients, targets and weights.
        share: Divisor for the gradient.
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
    target = tl.load(target_ptr + rows * plain_value(steps[1]), mask=inside, other=0)
    valid = inside & (target >= 0) & (target < classes)
    x_ptr += rows * plain_value(x_strides[0])
    above = number_value(margin, OPMATH) - tl.load(x_ptr + target * step, mask=valid, other=0)
    grad = tl.load(grad_ptr + rows * plain_value(steps[0]), mask=inside, other=0) / plain_value(share)
    weight = tl.full([BLOCK_M], 1, OPMATH)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + target * plain_value(steps[2]), mask=valid, other=0)
    acc = tl.zeros([BLOCK_M, BLOCK_N], OPMATH)
    for start in range(0, classes, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(INDEX)
        acc += slopes(x_ptr, cols, step, above, weight, target, valid, classes, SQUARE)
    total = tl.sum(acc, 1)
    for start in range(0, classes, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(INDEX)
        slope = slopes(x_ptr, cols, step, above, weight, target, valid, classes, SQUARE)
        slope = tl.where(cols[None, :] == target[:, None], -total[:, None], slope)
        mask = inside[:, None] & (cols < classes)[None, :]
        tl.store(out_ptr + rows[:, None] * classes + cols[None, :], slope * grad[:, None], mask=mask)


def wrapper(grad_output, self, target, p, margin, weight=None, reduction=1):
    x, classes = expect_class_of_row(self, target, weight)
    identical_dtypes(self, grad_output)
    if int(p) not in (1, 2):
        raise RuntimeError(f"p must be 1 or 2, got {p}")
    n, class_count = x.shape
    grad = row_gradient(grad_output, n, reduction)
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    BLOCK_M, BLOCK_N = row_tile(class_count)
    kernel_multi_margin_backward[(triton.cdiv(n, BLOCK_M),)](
        grad,
        x,
        classes,
        weight,
        out,
        (plain(n), plain(class_count)),
        (plain(x.stride(0)), plain(x.stride(1))),
        (plain(grad.stride(0)), plain(classes.stride(0)), plain(0 if weight is None else weight.stride(0))),
        plain(class_count * n if reduction == 1 else class_count),
        number_argument(margin, self.dtype),
        SQUARE=int(p) == 2,
        OPMATH=compute_types(self.dtype)[1],
        WIDE=are_wide(out.numel(), x, classes, grad),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
    )
    return out
