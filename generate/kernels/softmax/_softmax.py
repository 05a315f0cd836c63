"""aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor

A program takes BLOCK_M rows. Rows that fit its registers are read once; longer ones twice: first each lane keeps a
running maximum and the sum of exponentials rescaled to it (arXiv:1805.02867), then exp(x - max) / sum is written.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_softmax",)
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
def combined(peaks, totals):
    """Maximum and sum of exponentials rescaled to it, of each row; peaks and totals: those of each lane."""
    peak = tl.max(peaks, 1)[:, None]
    finite = tl.where(peak == float("-inf"), 0, peak)
    return peak, tl.sum(totals * tl.exp(peaks - finite), 1)[:, None]


@triton.jit
def kernel_softmax(
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
    WHOLE: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    inside = (rows < m)[:, None]
    x_ptr += strided(rows, row_shape, x_row_stride)[:, None]
    out_ptr += strided(rows, row_shape, out_row_stride)[:, None]
    if WHOLE:
        mask = inside & (lanes < n)
        x = tl.load(x_ptr + lanes * x_col_stride, mask=mask, other=float("-inf")).to(tl.float32)
        peak, total = combined(x, tl.full([BLOCK_M, BLOCK_N], 1.0, tl.float32))
        tl.store(out_ptr + lanes * out_col_stride, (tl.exp(x - peak) / total).to(out_ptr.dtype.element_ty), mask=mask)
    else:
        peaks = tl.full([BLOCK_M, BLOCK_N], float("-inf"), tl.float32)
        totals = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, n, BLOCK_N):
            cols = start + lanes
            x = tl.load(x_ptr + cols * x_col_stride, mask=inside & (cols < n), other=float("-inf")).to(tl.float32)
            new_peaks = tl.maximum(peaks, x)
            finite = tl.where(new_peaks == float("-inf"), 0, new_peaks)
            totals = totals * tl.exp(peaks - finite) + tl.exp(x - finite)
            peaks = new_peaks
        peak, total = combined(peaks, totals)
        for start in range(0, n, BLOCK_N):
            cols = start + lanes
            mask = inside & (cols < n)
            x = tl.load(x_ptr + cols * x_col_stride, mask=mask).to(tl.float32)
            tl.store(
                out_ptr + cols * out_col_stride, (tl.exp(x - peak) / total).to(out_ptr.dtype.element_ty), mask=mask
            )


def walk(dim, *tensors):
    """Shape of the rows along dim and, of each tensor, strides of the rows and stride in a row: rows in one dimension
    where all tensors are contiguous and dim is their last."""
    x = tensors[0]
    if x.dim() == 0:
        return (), [((), 1)] * len(tensors)
    dim %= x.dim()
    if dim == x.dim() - 1 and all(t.is_contiguous() for t in tensors):
        return (x.numel() // max(x.shape[dim], 1),), [((x.shape[dim],), 1)] * len(tensors)
    kept = [d for d in range(x.dim()) if d != dim]
    return tuple(x.shape[d] for d in kept), [(tuple(t.stride(d) for d in kept), t.stride(dim)) for t in tensors]


def tile(m, n):
    """BLOCK_M, BLOCK_N and warps: rows of up to 8192 elements are held whole, of up to 1024 by one warp."""
    BLOCK_N = triton.next_power_of_2(max(n, 1))
    if BLOCK_N <= 1024:
        return min(triton.next_power_of_2(max(m, 1)), 1024 // BLOCK_N), BLOCK_N, 1
    return (1, BLOCK_N, BLOCK_N // 1024) if BLOCK_N <= 8192 else (1, 4096, 8)


def wrapper(self, dim, half_to_float):
    dtype = torch.float32 if half_to_float else self.dtype
    out = torch.empty(self.shape, dtype=dtype, device=self.device)
    n = self.shape[dim] if self.dim() else 1
    m = out.numel() // max(n, 1)
    shape, (x_strides, out_strides) = walk(dim, self, out)
    BLOCK_M, BLOCK_N, warps = tile(m, n)
    kernel_softmax[(triton.cdiv(m, BLOCK_M),)](
        self,
        out,
        m,
        n,
        shape,
        *x_strides,
        *out_strides,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        WHOLE=n <= BLOCK_N,
        num_warps=warps,
    )
    return out
