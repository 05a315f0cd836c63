"""aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor
aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

A program sums BLOCK_M outputs over all their elements in fp32, BLOCK_N at a time, into a tile of partial sums that is
reduced and divided at the end. The mean of nothing is NaN.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::mean", "aten::mean.dim")
DTYPES = ("bfloat16", "float16", "float32")


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
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_mean(
    x_ptr,
    out_ptr,
    m,
    n,
    kept_shape,
    kept_stride,
    reduced_shape,
    reduced_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    base = strided(rows, kept_shape, kept_stride)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        x = tl.load(x_ptr + base[:, None] + strided(cols, reduced_shape, reduced_stride)[None, :], mask=mask, other=0)
        acc += convert(x, out_ptr.dtype.element_ty).to(tl.float32)
    tl.store(out_ptr + rows, (tl.sum(acc, 1) / n).to(out_ptr.dtype.element_ty), mask=rows < m)


def split_dims(self, dim):
    """(kept dimensions, reduced dimensions); no dim means all of them."""
    reduced = {d % max(self.dim(), 1) for d in dim} if dim else set(range(self.dim()))
    return [d for d in range(self.dim()) if d not in reduced], [d for d in range(self.dim()) if d in reduced]


def wrapper(self, dim=None, keepdim=False, *, dtype=None):
    if dtype is None:
        dtype = self.dtype
    kept, reduced = split_dims(self, dim)
    shape = [1 if d in reduced else self.shape[d] for d in range(self.dim()) if keepdim or d in kept]
    out = torch.empty(shape, dtype=dtype, device=self.device)
    reduced_shape = tuple(self.shape[d] for d in reduced)
    m, n = out.numel(), math.prod(reduced_shape)
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 8192)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 8192 // BLOCK_N)
    kernel_mean[(triton.cdiv(m, BLOCK_M),)](
        self,
        out,
        m,
        n,
        tuple(self.shape[d] for d in kept),
        tuple(self.stride(d) for d in kept),
        reduced_shape,
        tuple(self.stride(d) for d in reduced),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    return out
