"""aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt
    ignore_index, Tensor total_weight) -> Tensor

One flat grid over the [row, class] gradient: -weight[target] * grad at the target's class, divided by total_weight for
the mean (1), and 0 everywhere else and in ignored rows.
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
    BLOCK: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    within = (start % classes).to(tl.int64 if WIDE else tl.int32) + tl.arange(
        0, BLOCK
    )  # of rows from the block's first on, in fewer bits
    row = start // classes + within // classes
    target = tl.load(target_ptr + row * target_stride, mask=i < n, other=0).to(tl.int64)
    hit = (i < n) & (target != ignore_index) & (target == within % classes)
    grad = -tl.load(grad_ptr + row * grad_stride, mask=hit, other=0).to(tl.float32)
    if weight_ptr is not None:
        grad *= tl.load(weight_ptr + target * weight_stride, mask=hit, other=0).to(tl.float32)
    if MEAN:
        grad /= tl.load(total_ptr).to(tl.float32)
    out = tl.where(hit, grad, 0)
    tl.store(out_ptr + i, out.to(out_ptr.dtype.element_ty), mask=i < n)


def wrapper(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    rows = self.numel() // self.shape[-1] if self.shape[-1] else 0
    if rows and (target.numel() != rows or (grad_output.dim() and grad_output.shape[0] != rows)):
        raise RuntimeError(f"gradient {tuple(grad_output.shape)} and {target.numel()} targets of {rows} rows")
    if weight is not None and weight.shape[0] != self.shape[-1]:
        raise RuntimeError(f"{weight.shape[0]} weights of {self.shape[-1]} classes")
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    n = out.numel()
    BLOCK, warps = tuned(TUNED, out.shape)
    kernel_nll_loss_backward[(triton.cdiv(n, BLOCK),)](
        grad_output,
        target,
        weight,
        total_weight,
        out,
        n,
        self.shape[-1],
        ignore_index,
        grad_output.stride(0) if grad_output.dim() else 0,
        target.stride(0) if target.dim() else 0,
        0 if weight is None else weight.stride(0),
        MEAN=reduction == 1,
        WIDE=self.shape[-1] >= 2**30,
        BLOCK=BLOCK,
        num_warps=warps,
    )
    return out
