"""aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool
    scale_grad_by_freq) -> Tensor

A program sums, in fp32 and in the order of the indices, the gradient rows of all indices equal to its own: no atomics,
so the result is deterministic. Where the vocabulary is no larger than the indices there is a program per vocabulary
row and part of the indices: of a small vocabulary few rows have all the work, so the indices are cut into parts, whose
sums a second kernel adds up in their order. Else there is one per index, of which the first with its value writes,
after a kernel that zeroes the output. Work is O(min(vocabulary, indices) * indices) comparisons; only matching gradient
rows are read, GATHER at a time.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::embedding_dense_backward",)
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
def kernel_zero(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.zeros([BLOCK], out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_gather(
    grad_ptr,
    indices_ptr,
    out_ptr,
    m,
    n,
    part,
    padding_idx,
    shape,
    indices_stride,
    grad_row_stride,
    grad_col_stride,
    BY_INDEX: tl.constexpr,
    SCALE: tl.constexpr,
    GATHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sums over indices program_id(2) * part and on, `part` of them; out has a dimension for the parts in front."""
    own = tl.program_id(0).to(tl.int64)
    word = own
    if BY_INDEX:
        word = tl.load(indices_ptr + tl.sum(strided(own + tl.zeros([1], tl.int64), shape, indices_stride), 0)).to(
            tl.int64
        )
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([GATHER, BLOCK_N], tl.float32)
    count = tl.zeros([], tl.int32)
    earlier = tl.zeros([], tl.int32)
    begin = tl.program_id(2).to(tl.int64) * part
    lanes = tl.arange(0, BLOCK_M)
    for start in range(begin, tl.minimum(begin + part, m), BLOCK_M):
        rows = start + lanes.to(tl.int64)
        index = tl.load(indices_ptr + strided(rows, shape, indices_stride), mask=rows < m, other=-1).to(tl.int64)
        same = (rows < m) & (index == word) & (index != padding_idx)
        rank = tl.cumsum(same.to(tl.int32), 0)
        found = tl.sum(same.to(tl.int32), 0)
        earlier += tl.sum((same & (rows < own)).to(tl.int32), 0)
        count += found
        for first in range(0, found, GATHER):
            ranks = first + 1 + tl.arange(0, GATHER)
            hit = same[None, :] & (rank[None, :] == ranks[:, None])
            row = start + tl.sum(tl.where(hit, lanes[None, :], 0), 1).to(tl.int64)
            offset = strided(row, shape, grad_row_stride)[:, None] + cols[None, :] * grad_col_stride
            mask = (ranks <= found)[:, None] & (cols < n)[None, :]
            acc += tl.load(grad_ptr + offset, mask=mask, other=0).to(tl.float32)
    out = tl.sum(acc, 0)
    if SCALE:
        out = out / tl.maximum(count, 1).to(tl.float32)
    mask = cols < n
    if BY_INDEX:
        mask = mask & (earlier + tl.zeros_like(cols) == 0)
    out_ptr += tl.program_id(2).to(tl.int64) * tl.num_programs(0) * n
    tl.store(out_ptr + word * n + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_add_parts(parts_ptr, out_ptr, n, count, BLOCK: tl.constexpr):
    """out = the sum of `count` parts of n elements each."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(count):
        total += tl.load(parts_ptr + i, mask=i < n, other=0.0)
        parts_ptr += n
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)


def wrapper(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    m, n = indices.numel(), grad_output.shape[-1]
    out = torch.empty((num_weights, n), dtype=grad_output.dtype, device=grad_output.device)
    by_index = num_weights > m
    if by_index:
        kernel_zero[(triton.cdiv(out.numel(), 4096),)](out, out.numel(), BLOCK=4096, num_warps=8)
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 512)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 1024)
    across, part, parts, sums = triton.cdiv(n, BLOCK_N), m, 1, out
    if not by_index and not scale_grad_by_freq and out.numel():
        parts = max(min(4096 // (num_weights * across), triton.cdiv(m, BLOCK_M)), 1)
        part = triton.cdiv(triton.cdiv(m, parts), BLOCK_M) * BLOCK_M
        parts = max(triton.cdiv(m, part), 1)
    if parts > 1:
        sums = torch.empty((parts, num_weights, n), dtype=torch.float32, device=out.device)
    kernel_gather[(m if by_index else num_weights, across, parts)](
        grad_output,
        indices,
        sums,
        m,
        n,
        part,
        padding_idx,
        tuple(indices.shape),
        indices.stride(),
        grad_output.stride()[:-1],
        grad_output.stride(-1),
        BY_INDEX=by_index,
        SCALE=scale_grad_by_freq,
        GATHER=8,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    if parts > 1:
        kernel_add_parts[(triton.cdiv(out.numel(), 1024),)](sums, out, out.numel(), parts, BLOCK=1024)
    return out
