"""aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool
    sparse=False) -> Tensor

Gathers rows: a program copies BLOCK_M indices' rows, BLOCK_N columns at a time. padding_idx and the other flags only
matter to the gradient.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::embedding",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


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
def kernel_embedding(
    weight_ptr,
    indices_ptr,
    out_ptr,
    m,
    n,
    weight_stride,
    shape,
    indices_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    index = tl.load(indices_ptr + strided(rows, shape, indices_stride), mask=rows < m, other=0).to(tl.int64)
    x = tl.load(weight_ptr + index[:, None] * weight_stride[0] + cols[None, :] * weight_stride[1], mask=mask)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], x, mask=mask)


def wrapper(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    n = weight.shape[1]
    out = torch.empty((*indices.shape, n), dtype=weight.dtype, device=weight.device)
    m = indices.numel()
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 1024)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 8192 // BLOCK_N)
    kernel_embedding[(triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))](
        weight,
        indices,
        out,
        m,
        n,
        weight.stride(),
        tuple(indices.shape),
        indices.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    return out
