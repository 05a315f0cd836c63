"""aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt
    ignore_index, Tensor total_weight) -> Tensor

The gradient is computed in [row, class] tiles. It is -weight[target] * grad at the target class. For the mean
(1), it is divided by total_weight. It is 0 at other classes and in ignored rows.
"""

import torch
import triton
import triton.language as tl
from blocks.tuning import tuned

OVERLOADS = ("aten::nll_loss_backward",)
DTYPES = ("bfloat16", "float16", "float32")
SPACE = (("BLOCK", (256, 512, 1024, 2048, 4096)), ("WARPS", (4, 8)))
TUNED = (("", 0, 4096, 8),)


@triton.jit
def kernel_nll_loss_backward(
    grad_ptr,
    target_ptr,
    weight_ptr,
    total_ptr,
    out_ptr,
    n,
    classes,
    ignore_index,
    grad_stride,
    target_stride,
    weight_stride,
    MEAN: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute a [BLOCK_M, BLOCK_N] tile of the gradient.

    Args:
        grad_ptr: [n], read.
        target_ptr: [n] int64 or uint8, read.
        weight_ptr: [classes], read, or None.
        total_ptr: One element, the total weight, read if MEAN.
        out_ptr: [n, classes], contiguous, written.
        n: Number of rows.
        classes: Number of classes.
        ignore_index: Class number of rows that are ignored.
        grad_stride: Stride of the gradient; 0 for a single one.
        target_stride: Stride of the targets; 0 for a single one.
        weight_stride: Stride of the weights; 0 if there are none.
        MEAN: Divide by the total weight.
        WIDE: Compute offsets in 64 bits.
        BLOCK_M: Rows per program instance.
        BLOCK_N: Classes per program instance.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    across = tl.cdiv(classes, BLOCK_N)
    rows = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (tl.program_id(0) % across).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    target = tl.load(target_ptr + rows * target_stride, mask=rows < n, other=-1).to(tl.int64)
    counts = (target != ignore_index) & (target >= 0) & (target < classes)
    grad = -tl.load(grad_ptr + rows * grad_stride, mask=counts, other=0).to(tl.float32)
    if weight_ptr is not None:
        grad *= tl.load(weight_ptr + target * weight_stride, mask=counts, other=0).to(tl.float32)
    if MEAN:
        grad /= tl.load(total_ptr).to(tl.float32)
    target_class = tl.where(counts, target, -1).to(INDEX)
    out = tl.where(columns[None, :] == target_class[:, None], grad[:, None], 0).to(out_ptr.dtype.element_ty)
    offset = rows.to(INDEX)[:, None] * classes + columns[None, :]
    tl.store(out_ptr + offset, out, mask=(rows < n)[:, None] & (columns < classes)[None, :])


def wrapper(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    if target.dtype not in (torch.int64, torch.uint8):
        raise RuntimeError(f"targets must be int64 or uint8, got {target.dtype}")
    rows = self.numel() // self.shape[-1] if self.shape[-1] else 0
    if rows and (target.numel() != rows or (grad_output.dim() and grad_output.shape[0] != rows)):
        raise RuntimeError(f"gradient {tuple(grad_output.shape)} and {target.numel()} targets do not fit {rows} rows")
    if weight is not None and weight.shape[0] != self.shape[-1]:
        raise RuntimeError(f"expected a weight for each class ({self.shape[-1]}), got {weight.shape[0]}")
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    n, classes = rows, self.shape[-1]
    BLOCK, warps = tuned(TUNED, out.shape)
    BLOCK_N = min(triton.next_power_of_2(classes), BLOCK)
    if rows:
        kernel_nll_loss_backward[(triton.cdiv(n, BLOCK // BLOCK_N) * triton.cdiv(classes, BLOCK_N),)](
            grad_output,
            target,
            weight,
            total_weight,
            out,
            n,
            classes,
            ignore_index,
            grad_output.stride(0) if grad_output.dim() else 0,
            target.stride(0) if target.dim() else 0,
            0 if weight is None else weight.stride(0),
            MEAN=reduction == 1,
            # A tile may pass the end by BLOCK elements in rows and by BLOCK in columns.
            WIDE=out.numel() >= 2**31 - 2 * BLOCK,
            BLOCK_M=BLOCK // BLOCK_N,
            BLOCK_N=BLOCK_N,
            num_warps=warps,
        )
    return out
