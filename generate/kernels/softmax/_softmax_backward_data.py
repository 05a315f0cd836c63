"""aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor

(grad - sum(grad * output)) * output: a program takes BLOCK_M rows, sums in a first pass and writes in a second.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_softmax_backward_data",)
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
def kernel_softmax_backward_data(
    grad_ptr,
    y_ptr,
    out_ptr,
    m,
    n,
    row_shape,
    grad_row_stride,
    grad_col_stride,
    y_row_stride,
    y_col_stride,
    out_row_stride,
    out_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    grad_ptr += strided(rows, row_shape, grad_row_stride)[:, None]
    y_ptr += strided(rows, row_shape, y_row_stride)[:, None]
    out_ptr += strided(rows, row_shape, out_row_stride)[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
        mask = (rows < m)[:, None] & (cols < n)
        grad = tl.load(grad_ptr + cols * grad_col_stride, mask=mask, other=0).to(tl.float32)
        y = tl.load(y_ptr + cols * y_col_stride, mask=mask, other=0).to(tl.float32)
        acc += grad * y
    total = tl.sum(acc, 1)[:, None]
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
        mask = (rows < m)[:, None] & (cols < n)
        grad = tl.load(grad_ptr + cols * grad_col_stride, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + cols * y_col_stride, mask=mask).to(tl.float32)
        out = (grad - total) * y
        tl.store(out_ptr + cols * out_col_stride, out.to(out_ptr.dtype.element_ty), mask=mask)


def wrapper(grad_output, output, dim, input_dtype):
    out = torch.empty(output.shape, dtype=input_dtype, device=output.device)
    dims = max(out.dim(), 1)
    kept = [d for d in range(out.dim()) if d != dim % dims]
    n = out.shape[dim] if out.dim() else 1
    m = out.numel() // max(n, 1)
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 4096)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 4096 // BLOCK_N)
    kernel_softmax_backward_data[(triton.cdiv(m, BLOCK_M),)](
        grad_output,
        output,
        out,
        m,
        n,
        tuple(out.shape[d] for d in kept),
        tuple(grad_output.stride(d) for d in kept),
        grad_output.stride(dim) if out.dim() else 1,
        tuple(output.stride(d) for d in kept),
        output.stride(dim) if out.dim() else 1,
        tuple(out.stride(d) for d in kept),
        out.stride(dim) if out.dim() else 1,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    return out
