"""aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor
    maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int
    padding_idx=-1) -> Tensor

A program takes BLOCK_M items: reads their bags' gradient rows, scales them, and adds them to the rows of the items'
indices by atomics in fp32 (fp64 for fp64); half precision is rounded from fp32 sums at the end. Where the bags were not
recorded they are found by bisection among the offsets. The maximum's gradient goes to the row that won, element by
element. A sparse gradient has a row for each item but padding, in the order of the items; where there is padding, their
number is read back, since it is a size. Frequencies are of the row's own index (ATen's CPU kernel takes another's).
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_embedding_bag_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")
LAYOUTS = ("sparse_coo", "strided")


@triton.jit
def wide(x):
    """The type to compute in: fp64 for fp64, fp32 for all else."""
    return x if x.dtype.is_fp64() else x.to(tl.float32)


@triton.jit
def bag_of(item, offset2bag_ptr, offsets_ptr, offsets_stride, bags, mask, LEVELS: tl.constexpr):
    """The bag of each item: as recorded, or else the last bag whose offset is not greater, by bisection."""
    if offset2bag_ptr is not None:
        return tl.load(offset2bag_ptr + item, mask=mask, other=0).to(tl.int64)
    bag = tl.zeros_like(item)
    for level in tl.static_range(LEVELS - 1, -1, -1):
        further = bag + (1 << level)
        known = mask & (further < bags)
        offset = tl.load(offsets_ptr + further * offsets_stride, mask=known, other=0)
        bag = tl.where(known & (offset <= item), further, bag)
    return bag


@triton.jit
def kernel_zero(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.zeros([BLOCK], out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_round(sums_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(sums_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_count(indices_ptr, counts_ptr, m, indices_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(indices_ptr + i * indices_stride, mask=i < m, other=0).to(tl.int64)
    tl.atomic_add(counts_ptr + index, tl.full([BLOCK], 1, tl.int32), mask=i < m, sem="relaxed")


@triton.jit
def kernel_add_max(
    grad_ptr, bag_size_ptr, maximum_ptr, sums_ptr, n, cols, grad_stride, maximum_stride, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bag, col = i // cols, i % cols
    mask = (i < n) & (tl.load(bag_size_ptr + bag, mask=i < n, other=0) > 0)
    grad = wide(tl.load(grad_ptr + bag * grad_stride[0] + col * grad_stride[1], mask=mask, other=0))
    index = tl.load(maximum_ptr + bag * maximum_stride[0] + col * maximum_stride[1], mask=mask, other=0).to(tl.int64)
    tl.atomic_add(sums_ptr + index * cols + col, grad, mask=mask, sem="relaxed")


@triton.jit
def kernel_add_rows(
    grad_ptr,
    indices_ptr,
    items_ptr,
    offsets_ptr,
    offset2bag_ptr,
    bag_size_ptr,
    weights_ptr,
    counts_ptr,
    sums_ptr,
    m,
    cols,
    padding_idx,
    grad_stride,
    indices_stride,
    offsets_stride,
    bags,
    weights_stride,
    MEAN: tl.constexpr,
    LEVELS: tl.constexpr,
    SPARSE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    slot = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = slot < m
    item = slot
    if items_ptr is not None:
        item = tl.load(items_ptr + slot, mask=inside, other=0)
    index = tl.load(indices_ptr + item * indices_stride, mask=inside, other=0).to(tl.int64)
    used = inside & (index != padding_idx)
    bag = bag_of(item, offset2bag_ptr, offsets_ptr, offsets_stride, bags, inside, LEVELS)
    mask = used[:, None] & (col < cols)[None, :]
    x = wide(tl.load(grad_ptr + bag[:, None] * grad_stride[0] + col[None, :] * grad_stride[1], mask=mask, other=0))
    if weights_ptr is not None:
        x = x * wide(tl.load(weights_ptr + item * weights_stride, mask=used, other=0))[:, None]
    if MEAN:
        size = tl.load(bag_size_ptr + bag, mask=used, other=1)
        x = x / tl.maximum(size, 1).to(x.dtype)[:, None]
    if counts_ptr is not None:
        x = x / tl.load(counts_ptr + index, mask=used, other=1).to(x.dtype)[:, None]
    if SPARSE:
        mask = inside[:, None] & (col < cols)[None, :]
        tl.store(sums_ptr + slot[:, None] * cols + col[None, :], x.to(sums_ptr.dtype.element_ty), mask=mask)
    else:
        tl.atomic_add(sums_ptr + index[:, None] * cols + col[None, :], x, mask=mask, sem="relaxed")


@triton.jit
def kernel_count_used(indices_ptr, counts_ptr, m, padding_idx, indices_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    used = (i < m) & (tl.load(indices_ptr + i * indices_stride, mask=i < m, other=0) != padding_idx)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(used.to(tl.int64), 0))


@triton.jit
def kernel_starts(counts_ptr, starts_ptr, blocks, BLOCK: tl.constexpr):
    total = tl.zeros([], tl.int64)
    for first in range(0, blocks, BLOCK):
        i = first + tl.arange(0, BLOCK)
        counts = tl.load(counts_ptr + i, mask=i < blocks, other=0)
        tl.store(starts_ptr + i, total + tl.cumsum(counts, 0) - counts, mask=i < blocks)
        total += tl.sum(counts, 0)
    tl.store(starts_ptr + blocks, total)


@triton.jit
def kernel_used(indices_ptr, starts_ptr, items_ptr, m, padding_idx, indices_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    used = (i < m) & (tl.load(indices_ptr + i * indices_stride, mask=i < m, other=0) != padding_idx)
    rank = tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(used.to(tl.int64), 0) - 1
    tl.store(items_ptr + rank, i, mask=used)


@triton.jit
def kernel_indices(indices_ptr, items_ptr, out_ptr, n, indices_stride, BLOCK: tl.constexpr):
    slot = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    item = slot
    if items_ptr is not None:
        item = tl.load(items_ptr + slot, mask=slot < n, other=0)
    tl.store(out_ptr + slot, tl.load(indices_ptr + item * indices_stride, mask=slot < n).to(tl.int64), mask=slot < n)


def levels(bags):
    """Steps of a bisection among this many offsets."""
    return math.ceil(math.log2(max(bags, 2)))


def tile(m, cols):
    """Items and columns of a program, and its warps: about 2048 elements, fewer where few items would leave it idle."""
    BLOCK_N = min(triton.next_power_of_2(max(cols, 1)), 256)
    BLOCK_M = min(2048 // BLOCK_N, triton.next_power_of_2(max(m // 512, 1)))
    return BLOCK_M, BLOCK_N, max(1, min(BLOCK_M * BLOCK_N // 256, 8))


def add_rows(grad, indices, items, offsets, offset2bag, bag_size, weights, counts, sums, mode, padding_idx, sparse):
    """Add the items' gradient rows to the rows of their indices in `sums`, or write them there one after another."""
    m, cols = sums.shape[0] if sparse else indices.shape[0], grad.shape[1]
    bags = min(offsets.shape[0], grad.shape[0])
    BLOCK_M, BLOCK_N, num_warps = tile(m, cols)
    kernel_add_rows[(triton.cdiv(m, BLOCK_M), triton.cdiv(cols, BLOCK_N))](
        grad,
        indices,
        items,
        offsets,
        offset2bag if offset2bag.shape[0] else None,
        bag_size,
        weights,
        counts,
        sums,
        m,
        cols,
        padding_idx,
        grad.stride(),
        indices.stride(0),
        offsets.stride(0),
        bags,
        0 if weights is None else weights.stride(0),
        MEAN=mode == 1,
        LEVELS=levels(bags),
        SPARSE=sparse,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )


def used_items(indices, padding_idx):
    """The items that are no padding, in their order. How many there are is read from the device."""
    m, stride = indices.shape[0], indices.stride(0)
    blocks = triton.cdiv(m, 1024)
    counts = torch.empty(blocks, dtype=torch.int64, device=indices.device)
    starts = torch.empty(blocks + 1, dtype=torch.int64, device=indices.device)
    kernel_count_used[(blocks,)](indices, counts, m, padding_idx, stride, BLOCK=1024)
    kernel_starts[(1,)](counts, starts, blocks, BLOCK=1024)
    items = torch.empty(starts.select(0, blocks).item(), dtype=torch.int64, device=indices.device)
    kernel_used[(blocks,)](indices, starts, items, m, padding_idx, stride, BLOCK=1024)
    return items


def sparse_gradient(grad, indices, offsets, offset2bag, bag_size, num_weights, mode, weights, padding_idx):
    items = None if padding_idx == -1 else used_items(indices, padding_idx)
    n, cols = indices.shape[0] if items is None else items.shape[0], grad.shape[1]
    values = torch.empty((n, cols), dtype=grad.dtype, device=grad.device)
    add_rows(grad, indices, items, offsets, offset2bag, bag_size, weights, None, values, mode, padding_idx, True)
    rows = indices.unsqueeze(0)  # shared with the result, as in ATen, where they are what it wants
    if items is not None or indices.dtype != torch.int64:
        rows = torch.empty((1, n), dtype=torch.int64, device=grad.device)
        kernel_indices[(triton.cdiv(n, 1024),)](indices, items, rows, n, indices.stride(0), BLOCK=1024)
    return torch.sparse_coo_tensor(rows, values, (num_weights, cols), check_invariants=False)


def check(grad, indices, offset2bag, bag_size, maximum_indices, mode, weights):
    """Raises RuntimeError where what is read of each item, bag or element of the gradient is not there for all."""
    items = [t for t in (offset2bag if offset2bag.shape[0] else None, weights) if t is not None]
    fits = all(t.shape == indices.shape for t in items) and (mode != 1 or bag_size.shape[0] >= grad.shape[0])
    if mode == 2:
        bags, columns = maximum_indices.shape
        fits = fits and bags >= min(grad.shape[0], bag_size.shape[0]) and columns == grad.shape[1]
    if not fits:
        raise RuntimeError(f"gradient {tuple(grad.shape)} of {bag_size.shape[0]} bags of {indices.shape[0]} items")


def wrapper(
    grad,
    indices,
    offsets,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    padding_idx=-1,
):
    check(grad, indices, offset2bag, bag_size, maximum_indices, mode, per_sample_weights)
    if sparse:
        if mode == 2 or scale_grad_by_freq:
            raise RuntimeError("a sparse gradient is of sums and means only, and not scaled by frequency")
        return sparse_gradient(
            grad, indices, offsets, offset2bag, bag_size, num_weights, mode, per_sample_weights, padding_idx
        )
    m, cols = indices.shape[0], grad.shape[1]
    out = torch.empty((num_weights, cols), dtype=grad.dtype, device=grad.device)
    exact = grad.dtype in (torch.float32, torch.float64)
    sums = out if exact else torch.empty((num_weights, cols), dtype=torch.float32, device=grad.device)
    n = num_weights * cols
    kernel_zero[(triton.cdiv(n, 4096),)](sums, n, BLOCK=4096, num_warps=8)
    if mode == 2:
        n_max = min(grad.shape[0], bag_size.shape[0]) * cols
        kernel_add_max[(triton.cdiv(n_max, 1024),)](
            grad, bag_size, maximum_indices, sums, n_max, cols, grad.stride(), maximum_indices.stride(), BLOCK=1024
        )
    else:
        counts = None
        if scale_grad_by_freq:
            counts = torch.empty(num_weights, dtype=torch.int32, device=grad.device)
            kernel_zero[(triton.cdiv(num_weights, 4096),)](counts, num_weights, BLOCK=4096, num_warps=8)
            kernel_count[(triton.cdiv(m, 1024),)](indices, counts, m, indices.stride(0), BLOCK=1024)
        add_rows(
            grad,
            indices,
            None,
            offsets,
            offset2bag,
            bag_size,
            per_sample_weights,
            counts,
            sums,
            mode,
            padding_idx,
            False,
        )
    if not exact:
        kernel_round[(triton.cdiv(n, 4096),)](sums, out, n, BLOCK=4096, num_warps=8)
    return out
