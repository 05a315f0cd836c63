"""aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor
    output, Tensor total_weight)

A row's loss is -weight[target] * self[row, target] in fp32. Without a reduction, a flat grid writes one loss
per row. For mean (1) and sum (2), each program instance sums losses and weights over every PARTS-th block of
rows. If there is more than one, a second kernel adds up their sums in a fixed order, so the result is
deterministic. The mean is NaN if all rows are ignored.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::nll_loss_forward",)
DTYPES = ("bfloat16", "float16", "float32")

MOST_PARTS = 512  # the second kernel adds up all partial sums in one block


@triton.jit
def row_loss(x_ptr, target_ptr, weight_ptr, rows, sizes, ignore_index, x_stride, target_stride, weight_stride):
    """Return each row's (loss, weight).

    Both are 0 if the target is ignored or not a class, or if the row is out of bounds.
    """
    target = tl.load(target_ptr + rows * target_stride, mask=rows < sizes[0], other=0).to(tl.int64)
    valid = (rows < sizes[0]) & (target != ignore_index) & (target >= 0) & (target < sizes[1])
    x = tl.load(x_ptr + rows * x_stride[0] + target * x_stride[1], mask=valid, other=0).to(tl.float32)
    weight = tl.where(valid, 1.0, 0.0)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + target * weight_stride, mask=valid, other=0).to(tl.float32)
    return tl.where(valid, -x * weight, 0), weight


@triton.jit
def kernel_rows(
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    total_ptr,
    sizes,
    ignore_index,
    x_stride,
    target_stride,
    weight_stride,
    BLOCK: tl.constexpr,
):
    """Store the losses for BLOCK rows, and a total weight of 0.

    Args:
        x_ptr: [rows, classes], read.
        target_ptr: [rows] int64 or uint8, read.
        weight_ptr: [classes], read, or None.
        out_ptr: [rows], written.
        total_ptr: One element, written by program instance 0.
        sizes: (rows, classes).
        ignore_index: Class number of rows that are ignored.
        x_stride: The two strides of x.
        target_stride: Stride of the targets.
        weight_stride: Stride of the weights; 0 if there are none.
        BLOCK: Rows per program instance.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    loss, _ = row_loss(x_ptr, target_ptr, weight_ptr, rows, sizes, ignore_index, x_stride, target_stride, weight_stride)
    tl.store(out_ptr + rows, loss.to(out_ptr.dtype.element_ty), mask=rows < sizes[0])
    if tl.program_id(0) == 0:
        tl.store(total_ptr, tl.full([], 0, total_ptr.dtype.element_ty))


@triton.jit
def store_reduced(losses, weights, out_ptr, total_ptr, MEAN: tl.constexpr):
    """Store the sum or mean (MEAN) of the losses, and the sum of the weights.

    Args:
        losses: [BLOCK] fp32 losses.
        weights: [BLOCK] fp32 weights.
        out_ptr: One element, written.
        total_ptr: One element, written.
        MEAN: Divide the loss by the weight.
    """
    out, total = tl.sum(losses, 0), tl.sum(weights, 0)
    if MEAN:
        out = out / total
    tl.store(out_ptr, out.to(out_ptr.dtype.element_ty))
    tl.store(total_ptr, total.to(total_ptr.dtype.element_ty))


@triton.jit
def kernel_reduced(
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    total_ptr,
    sizes,
    ignore_index,
    x_stride,
    target_stride,
    weight_stride,
    MEAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum losses and weights into element program_id(0) of `out` and `total`.

    Args:
        x_ptr: [rows, classes], read.
        target_ptr: [rows] int64 or uint8, read.
        weight_ptr: [classes], read, or None.
        out_ptr: [programs], written.
        total_ptr: [programs], written.
        sizes: (rows, classes).
        ignore_index: Class number of rows that are ignored.
        x_stride: The two strides of x.
        target_stride: Stride of the targets.
        weight_stride: Stride of the weights; 0 if there are none.
        MEAN: Divide by the weight; only if there is one program instance.
        BLOCK: Rows that are loaded at a time.
    """
    losses = tl.zeros([BLOCK], tl.float32)
    weights = tl.zeros([BLOCK], tl.float32)
    for start in range(tl.program_id(0).to(tl.int64) * BLOCK, sizes[0], tl.num_programs(0) * BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        loss, weight = row_loss(
            x_ptr, target_ptr, weight_ptr, rows, sizes, ignore_index, x_stride, target_stride, weight_stride
        )
        losses += loss
        weights += weight
    store_reduced(losses, weights, out_ptr + tl.program_id(0), total_ptr + tl.program_id(0), MEAN)


@triton.jit
def kernel_add_parts(losses_ptr, weights_ptr, out_ptr, total_ptr, count, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """Add up the partial sums in one program instance.

    Args:
        losses_ptr: [count] fp32, read.
        weights_ptr: [count] fp32, read.
        out_ptr: One element, written.
        total_ptr: One element, written.
        count: Number of partial sums; at most BLOCK.
        MEAN: Divide the loss by the weight.
        BLOCK: Largest number of partial sums.
    """
    i = tl.arange(0, BLOCK)
    losses = tl.load(losses_ptr + i, mask=i < count, other=0.0)
    weights = tl.load(weights_ptr + i, mask=i < count, other=0.0)
    store_reduced(losses, weights, out_ptr, total_ptr, MEAN)


def wrapper(self, target, weight, reduction, ignore_index):
    if target.dtype not in (torch.int64, torch.uint8):
        raise RuntimeError(f"targets must be int64 or uint8, got {target.dtype}")
    x, rows = (self, target) if self.dim() == 2 else (self.unsqueeze(0), target.view(1))
    n, classes = x.shape
    if rows.shape[0] != n or (weight is not None and weight.shape[0] != classes):
        raise RuntimeError(f"{rows.shape[0]} targets, or the weights, do not fit {n} rows with {classes} classes")
    total_weight = torch.empty((), dtype=self.dtype, device=self.device)
    strides = x.stride(), rows.stride(0), 0 if weight is None else weight.stride(0)
    if reduction == 0 and self.dim() == 2:
        out = torch.empty(n, dtype=self.dtype, device=self.device)
        grid = (max(triton.cdiv(n, 1024), 1),)
        kernel_rows[grid](x, rows, weight, out, total_weight, (n, classes), ignore_index, *strides, BLOCK=1024)
    else:
        out = torch.empty((), dtype=self.dtype, device=self.device)
        sums = out, total_weight
        parts = max(min(triton.cdiv(n, 512), MOST_PARTS), 1)
        if parts > 1:
            sums = [torch.empty(parts, dtype=torch.float32, device=self.device) for _ in sums]
        mean = reduction == 1
        kernel_reduced[(parts,)](
            x, rows, weight, *sums, (n, classes), ignore_index, *strides, MEAN=mean and parts == 1, BLOCK=512
        )
        if parts > 1:
            kernel_add_parts[(1,)](*sums, out, total_weight, parts, MEAN=mean, BLOCK=MOST_PARTS)
    return out, total_weight
