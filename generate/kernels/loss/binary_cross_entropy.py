"""aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor

-weight (t max(log x, -100) + (1 - t) max(log(1 - x), -100)) in fp32 (fp64 for fp64). Without reduction one flat grid
writes the losses. Mean (1) and sum (2) are summed by up to 1024 programs, each in a fixed order, and a last one sums
their results, so the sum is deterministic; few elements take one program.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::binary_cross_entropy",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


@triton.jit
def wide(x):
    """The type to compute in: fp64 for fp64, fp32 for all else."""
    return x if x.dtype.is_fp64() else x.to(tl.float32)


@triton.jit
def log_clamped(x):
    """log(x), not less than -100, as in ATen; NaN stays NaN."""
    log = tl.log(x)
    return tl.where(log < -100.0, -100.0, log)


@triton.jit
def log1m_clamped(x):
    """log(1 - x), not less than -100, exact also where 1 - x rounds to 1: log(u) (-x) / (u - 1) with u = 1 - x."""
    u = 1 - x
    log = tl.where(u == 1, -x, tl.log(u) * -x / (u - 1))
    log = tl.where(u == 0, -100.0, log)
    return tl.where(log < -100.0, -100.0, log)


@triton.jit
def losses(x_ptr, target_ptr, weight_ptr, i, mask, shape, x_stride, target_stride, weight_stride):
    """The loss of each flat index, in the type to compute in."""
    x = wide(tl.load(x_ptr + strided(i, shape, x_stride), mask=mask, other=0.5))
    target = wide(tl.load(target_ptr + strided(i, shape, target_stride), mask=mask, other=0))
    loss = (target - 1) * log1m_clamped(x) - target * log_clamped(x)
    if weight_ptr is not None:
        loss = loss * wide(tl.load(weight_ptr + strided(i, shape, weight_stride), mask=mask, other=0))
    return loss


@triton.jit
def kernel_losses(
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    n,
    shape,
    x_stride,
    target_stride,
    weight_stride,
    out_stride,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    loss = losses(x_ptr, target_ptr, weight_ptr, i, mask, shape, x_stride, target_stride, weight_stride)
    tl.store(out_ptr + strided(i, shape, out_stride), loss.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_sums(
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    n,
    chunk,
    divisor,
    shape,
    x_stride,
    target_stride,
    weight_stride,
    MEAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * chunk
    acc = wide(tl.zeros([BLOCK], x_ptr.dtype.element_ty))
    for first in range(0, chunk, BLOCK):
        i = start + first + tl.arange(0, BLOCK)
        mask = i < n
        loss = losses(x_ptr, target_ptr, weight_ptr, i, mask, shape, x_stride, target_stride, weight_stride)
        acc += tl.where(mask, loss, 0)
    out = tl.sum(acc, 0)
    if MEAN:
        out = out / divisor
    tl.store(out_ptr + tl.program_id(0), out.to(out_ptr.dtype.element_ty))


@triton.jit
def kernel_total(parts_ptr, out_ptr, parts, divisor, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    out = tl.sum(tl.load(parts_ptr + i, mask=i < parts, other=0), 0)
    if MEAN:
        out = out / divisor
    tl.store(out_ptr, out.to(out_ptr.dtype.element_ty))


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie alike and without gaps."""
    first = tensors[0]
    if all(t.is_contiguous() for t in tensors):
        return (first.numel(),), [(1,)] * len(tensors)
    shape, strides = tuple(first.shape), [t.stride() for t in tensors]
    dense = 1 + sum((n - 1) * s for n, s in zip(shape, strides[0], strict=True)) == first.numel()
    if dense and all(s == strides[0] for s in strides):
        return (first.numel(),), [(1,)] * len(tensors)
    return shape, strides


def wrapper(self, target, weight=None, reduction=1):
    shape = self.shape
    if target.shape != shape:  # as ATen on the CPU takes them: [1, 5] and [5, 1] are five pairs
        target = target.squeeze().expand(self.squeeze().shape).view(shape)
    if weight is not None and weight.shape != shape:
        weight = weight.expand(shape)
    tensors = (self, target) if weight is None else (self, target, weight)
    n = self.numel()
    if reduction == 0:
        out = torch.empty_like(self)
        shape, strides = walk(*tensors, out)
        weight_stride = strides[0] if weight is None else strides[2]
        kernel_losses[(triton.cdiv(n, 2048),)](
            self, target, weight, out, n, shape, *strides[:2], weight_stride, strides[-1], BLOCK=2048, num_warps=8
        )
        return out
    out = torch.empty((), dtype=self.dtype, device=self.device)
    shape, strides = walk(*tensors)
    strides = (*strides[:2], strides[0] if weight is None else strides[2])
    programs = 1 if n <= 16384 else min(triton.cdiv(n, 8192), 1024)
    chunk = triton.cdiv(triton.cdiv(n, programs), 2048) * 2048
    if programs == 1:
        kernel_sums[(1,)](
            self, target, weight, out, n, chunk, n, shape, *strides, MEAN=reduction == 1, BLOCK=2048, num_warps=8
        )
        return out
    dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
    parts = torch.empty(programs, dtype=dtype, device=self.device)
    kernel_sums[(programs,)](
        self, target, weight, parts, n, chunk, n, shape, *strides, MEAN=False, BLOCK=2048, num_warps=8
    )
    kernel_total[(1,)](parts, out, programs, n, MEAN=reduction == 1, BLOCK=1024)
    return out
