"""aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool
    scale_grad_by_freq) -> Tensor

Zero the result, then add the gradient rows to it, 32 indices at a time.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::embedding_dense_backward",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def kernel_zero(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.zeros([BLOCK], out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_add_rows(grad_ptr, indices_ptr, out_ptr, m, n, padding_idx, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(indices_ptr + rows, mask=rows < m, other=0)
    mask = ((rows < m) & (index != padding_idx))[:, None] & (cols < n)[None, :]
    grad = tl.load(grad_ptr + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)
    out = out_ptr + index[:, None] * n + cols[None, :]
    tl.store(out, tl.load(out, mask=mask, other=0.0) + grad, mask=mask)


def wrapper(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    m, n = indices.numel(), grad_output.shape[-1]
    out = torch.empty((num_weights, n), dtype=grad_output.dtype, device=grad_output.device)
    kernel_zero[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 128))
    kernel_add_rows[grid](grad_output, indices, out, m, n, padding_idx, ROWS=32, BLOCK=128)
    return out
