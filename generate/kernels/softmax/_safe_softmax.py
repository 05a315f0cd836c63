"""aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor

A program takes BLOCK_M rows and passes over each twice: the first keeps a running maximum and the sum of exponentials
rescaled to it (arXiv:1805.02867), the second writes exp(x - max) / sum; a row that is all -inf becomes zeros. The input
is converted to `dtype` before all else, but whether it is -inf is asked before that.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_safe_softmax",)
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
def kernel_safe_softmax(
    x_ptr,
    out_ptr,
    m,
    n,
    row_shape,
    x_row_stride,
    x_col_stride,
    out_row_stride,
    out_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    x_ptr += strided(rows, row_shape, x_row_stride)[:, None]
    out_ptr += strided(rows, row_shape, out_row_stride)[:, None]
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    alive = tl.zeros([BLOCK_M], tl.int32)  # whether anything in the row is not -inf
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
        mask = (rows < m)[:, None] & (cols < n)
        x = tl.load(x_ptr + cols * x_col_stride, mask=mask, other=float("-inf")).to(tl.float32)
        alive = tl.maximum(alive, tl.max((x != float("-inf")).to(tl.int32), 1))
        x = x.to(dtype).to(tl.float32)
        new_peak = tl.maximum(peak, tl.max(x, 1))
        finite = tl.where(new_peak == float("-inf"), 0, new_peak)
        total = total * tl.exp(peak - finite) + tl.sum(tl.exp(x - finite[:, None]), 1)
        peak = new_peak
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
        mask = (rows < m)[:, None] & (cols < n)
        x = tl.load(x_ptr + cols * x_col_stride, mask=mask).to(tl.float32).to(dtype).to(tl.float32)
        out = tl.where(alive[:, None] != 0, tl.exp(x - peak[:, None]) / total[:, None], 0)
        tl.store(out_ptr + cols * out_col_stride, out.to(dtype), mask=mask)


def wrapper(self, dim, dtype=None):
    out = torch.empty(self.shape, dtype=dtype or self.dtype, device=self.device)
    dims = max(self.dim(), 1)
    kept = [d for d in range(self.dim()) if d != dim % dims]
    n = self.shape[dim] if self.dim() else 1
    m = out.numel() // max(n, 1)
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 4096)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 4096 // BLOCK_N)
    kernel_safe_softmax[(triton.cdiv(m, BLOCK_M),)](
        self,
        out,
        m,
        n,
        tuple(self.shape[d] for d in kept),
        tuple(self.stride(d) for d in kept),
        self.stride(dim) if self.dim() else 1,
        tuple(out.stride(d) for d in kept),
        out.stride(dim) if self.dim() else 1,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    return out
