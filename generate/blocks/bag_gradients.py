"""Gradients of embedding bags: bag lookup for each item, and accumulation into the rows of the table.

Used by the backward kernels of `_embedding_bag`.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.bags import BAG_PROGRAMS, BAG_TILE, WARP_ELEMENTS
from blocks.elementwise import elementwise
from blocks.offsets import plain, plain_value
from blocks.types import compute_types


@triton.jit
def bag_of(item, offset2bag_ptr, offset2bag_stride, offsets_ptr, offsets_stride, bags, mask, LEVELS: tl.constexpr):
    """Return each item's bag: the recorded one, or else the last bag whose offset is <= item, by bisection."""
    if offset2bag_ptr is not None:
        bag = tl.load(offset2bag_ptr + item * offset2bag_stride, mask=mask, other=0).to(tl.int64)
    else:
        bag = tl.zeros_like(item)
        # invariant: offsets[bag] <= item; the first offset is 0
        for level in tl.static_range(LEVELS - 1, -1, -1):
            further = bag + (1 << level)
            known = mask & (further < bags)
            offset = tl.load(offsets_ptr + further * offsets_stride, mask=known, other=0)
            bag = tl.where(known & (offset <= item), further, bag)
    return bag


@triton.jit
def bag_count_kernel(indices_ptr, counts_ptr, m, height, stride, BLOCK: tl.constexpr):
    """Count how often each index occurs, ignoring indices out of range.

    Args:
        indices_ptr: [m], read with `stride`.
        counts_ptr: [height] int32, initialized to 0, updated with atomics.
        m: Item count, encoded by `plain`.
        height: Table rows, encoded by `plain`.
        stride: Stride of `indices`, encoded by `plain`.
        BLOCK: Items per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(m)
    index = tl.load(indices_ptr + i * plain_value(stride), mask=mask, other=0).to(tl.int64)
    mask &= (index >= 0) & (index < plain_value(height))
    # relaxed: nothing reads the counts before the launch ends
    tl.atomic_add(counts_ptr + index, tl.full([BLOCK], 1, tl.int32), mask=mask, sem="relaxed")


@triton.jit
def bag_max_kernel(
    grad_ptr,
    bag_size_ptr,
    maximum_ptr,
    sums_ptr,
    n,
    cols,
    height,
    grad_stride,
    maximum_stride,
    bag_size_stride,
    BLOCK: tl.constexpr,
):
    """Add each gradient element in mode "max" to the table row that won it.

    An index out of range adds nothing, and neither does an empty bag.

    Args:
        grad_ptr: [bags, cols], read.
        bag_size_ptr: [bags], read.
        maximum_ptr: [bags, cols], read: the winning index per element.
        sums_ptr: [height, cols], contiguous, updated with atomics.
        n: Element count, bags * cols.
        cols: Columns.
        height: Table rows.
        grad_stride: Strides of `grad`.
        maximum_stride: Strides of `maximum`.
        bag_size_stride: Stride of `bag_size`.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bag, col = i // cols, i % cols
    mask = (i < n) & (tl.load(bag_size_ptr + bag * bag_size_stride, mask=i < n, other=0) > 0)
    grad = tl.load(grad_ptr + bag * grad_stride[0] + col * grad_stride[1], mask=mask, other=0)
    index = tl.load(maximum_ptr + bag * maximum_stride[0] + col * maximum_stride[1], mask=mask, other=0).to(tl.int64)
    mask &= (index >= 0) & (index < height)
    # atomic, because bags may share their winning row; relaxed, because nothing reads the sums in this launch
    tl.atomic_add(sums_ptr + index * cols + col, grad.to(sums_ptr.dtype.element_ty), mask=mask, sem="relaxed")


@triton.jit
def bag_rows_kernel(
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
    height,
    padding_idx,
    grad_stride,
    indices_stride,
    offsets_stride,
    offset2bag_stride,
    bag_size_stride,
    bags,
    weights_stride,
    OPMATH: tl.constexpr,
    MEAN: tl.constexpr,
    LEVELS: tl.constexpr,
    SPARSE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Add (or write, if SPARSE) each item's gradient row: its bag's row, weighted and averaged.

    Padding items and, unless SPARSE, indices out of range contribute nothing; SPARSE writes zeros for padding.

    Args:
        grad_ptr: [bags, cols], read.
        indices_ptr: Table row per item, read.
        items_ptr: [m], the items to write, or None for all, read.
        offsets_ptr: [bags], first item per bag, or None, read (see `bag_of`).
        offset2bag_ptr: Bag per item, or None, read (see `bag_of`).
        bag_size_ptr: [bags], divisors in mode "mean", read if MEAN.
        weights_ptr: Per-sample weight per item, or None, read.
        counts_ptr: [height] int32, occurrences per index to divide by, or None, read.
        sums_ptr: SPARSE: [m, cols], written. Otherwise [height, cols], updated with atomics.
        m: Item count.
        cols: Columns.
        height: Rows of `sums`.
        padding_idx: Index whose items contribute nothing.
        grad_stride: Strides of `grad`.
        indices_stride: Stride of `indices`.
        offsets_stride: Stride of `offsets`, or 0.
        offset2bag_stride: Stride of `offset2bag`.
        bag_size_stride: Stride of `bag_size`.
        bags: Offsets to search in; 0 without `offsets`.
        weights_stride: Stride of `weights`, or 0.
        OPMATH: Compute type.
        MEAN: Divide by the bag's size.
        LEVELS: Bisection steps, from `bisection_levels`.
        SPARSE: Write one row per item instead of accumulating.
        BLOCK_M: Items per program instance.
        BLOCK_N: Columns per program instance.
    """
    slot = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = slot < m
    item = slot
    if items_ptr is not None:
        item = tl.load(items_ptr + slot, mask=inside, other=0)
    index = tl.load(indices_ptr + item * indices_stride, mask=inside, other=0).to(tl.int64)
    used = inside & (index != padding_idx)
    if not SPARSE:
        used &= (index >= 0) & (index < height)
    bag = bag_of(item, offset2bag_ptr, offset2bag_stride, offsets_ptr, offsets_stride, bags, inside, LEVELS)
    mask = used[:, None] & (col < cols)[None, :]
    x = tl.load(grad_ptr + bag[:, None] * grad_stride[0] + col[None, :] * grad_stride[1], mask=mask, other=0).to(OPMATH)
    if weights_ptr is not None:
        x = x * tl.load(weights_ptr + item * weights_stride, mask=used, other=0).to(OPMATH)[:, None]
    if MEAN:
        size = tl.load(bag_size_ptr + bag * bag_size_stride, mask=used, other=1)
        x = x / tl.maximum(size, 1).to(OPMATH)[:, None]
    if counts_ptr is not None:
        x = x / tl.load(counts_ptr + index, mask=used, other=1).to(OPMATH)[:, None]
    if SPARSE:  # a padding item's row is written too, with zeros, because x is 0 there
        mask = inside[:, None] & (col < cols)[None, :]
        tl.store(sums_ptr + slot[:, None] * cols + col[None, :], x.to(sums_ptr.dtype.element_ty), mask=mask)
    else:
        tl.atomic_add(sums_ptr + index[:, None] * cols + col[None, :], x, mask=mask, sem="relaxed")


def bisection_levels(bags):
    """Return the bisection step count for this many offsets."""
    return math.ceil(math.log2(max(bags, 2)))


def bag_tile(m, cols):
    """Return items and columns per program instance, and its warps.

    A tile has about BAG_TILE elements, and fewer if there are too few items to occupy a GPU.
    """
    BLOCK_N = min(triton.next_power_of_2(max(cols, 1)), 256)
    BLOCK_M = min(BAG_TILE // BLOCK_N, triton.next_power_of_2(max(m // BAG_PROGRAMS, 1)))
    return BLOCK_M, BLOCK_N, max(1, min(BLOCK_M * BLOCK_N // WARP_ELEMENTS, 8))


def add_bag_rows(grad, indices, items, offsets, offset2bag, bag_size, weights, counts, sums, mode, padding_idx, sparse):
    """Add each item's gradient row to row `indices[item]` in `sums`, or write the rows one after another.

    Args:
        grad: [bags, cols] output gradient.
        indices: Table row per item.
        items: Items to write, or None for all.
        offsets: First item per bag, or None if `offset2bag` records each item's bag.
        offset2bag: Bag per item, or empty.
        bag_size: Items per bag.
        weights: Per-sample weights, or None.
        counts: Occurrences per index to divide by, or None.
        sums: [height, cols] accumulator, or [items, cols] if `sparse`.
        mode: 0 for sum, 1 for mean.
        padding_idx: Index whose items contribute nothing.
        sparse: Write one row per item instead of accumulating.
    """
    m, cols = sums.shape[0] if sparse else indices.shape[0], grad.shape[1]
    bags = 0 if offsets is None else min(offsets.shape[0], grad.shape[0])
    BLOCK_M, BLOCK_N, num_warps = bag_tile(m, cols)
    bag_rows_kernel[(triton.cdiv(m, BLOCK_M), triton.cdiv(cols, BLOCK_N))](
        grad,
        indices,
        items,
        offsets,
        None if offsets is not None and not offset2bag.shape[0] else offset2bag,
        bag_size,
        weights,
        counts,
        sums,
        m,
        cols,
        sums.shape[0],
        padding_idx,
        grad.stride(),
        indices.stride(0),
        0 if offsets is None else offsets.stride(0),
        offset2bag.stride(0),
        bag_size.stride(0),
        bags,
        0 if weights is None else weights.stride(0),
        OPMATH=compute_types(grad.dtype)[1],
        MEAN=mode == 1,
        LEVELS=bisection_levels(bags),
        SPARSE=sparse,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )


def check_items(*tensors):
    """Raise RuntimeError, as ATen does, if indices or offsets are not int32 or int64, or not contiguous."""
    for t in tensors:
        if t.dtype not in (torch.int32, torch.int64) or not t.is_contiguous():
            raise RuntimeError(
                f"indices and offsets must be contiguous int32 or int64, got {t.dtype} with strides {t.stride()}"
            )


def check_bags(grad, indices, offset2bag, bag_size, maximum_indices, mode, weights):
    """Raise RuntimeError if a tensor is too short for the items, bags or gradient elements that read it."""
    items = [t for t in (offset2bag if offset2bag.shape[0] else None, weights) if t is not None]
    fits = all([t.shape[0] >= indices.shape[0] for t in items])
    fits = fits and (mode != 1 or bag_size.shape[0] >= grad.shape[0])
    if mode == 2:
        bags, columns = maximum_indices.shape
        fits = fits and bags >= min(grad.shape[0], bag_size.shape[0]) and columns == grad.shape[1]
    fits = fits and mode in (0, 1, 2) and (weights is None or (mode == 0 and weights.dtype == grad.dtype))
    if not fits:
        raise RuntimeError(
            f"gradient {tuple(grad.shape)} does not fit {bag_size.shape[0]} bags with {indices.shape[0]} items"
        )


def dense_bag_gradient(
    grad, indices, offsets, offset2bag, bag_size, maximum, num_weights, by_frequency, mode, weights, padding_idx
):
    """Return the dense table gradient, [num_weights, cols].

    It is accumulated with atomics in fp32 (fp64 for fp64), then rounded to the gradient's dtype. In mode 2
    (max) each element goes to the row that won it.

    Args:
        grad: [bags, cols] output gradient.
        indices: Table row per item.
        offsets: First item per bag, or None.
        offset2bag: Bag per item, or empty.
        bag_size: Items per bag.
        maximum: [bags, cols] winning indices, read in mode 2.
        num_weights: Table rows.
        by_frequency: Divide each item's gradient by how often its index occurs.
        mode: 0 for sum, 1 for mean, 2 for max.
        weights: Per-sample weights, or None.
        padding_idx: Index whose items contribute nothing.
    """
    m, cols = indices.shape[0], grad.shape[1]
    out = torch.empty((num_weights, cols), dtype=grad.dtype, device=grad.device)
    # 16-bit gradients are summed in fp32: each addition to a 16-bit sum would be rounded
    exact = grad.dtype in (torch.float32, torch.float64)
    sums = out if exact else torch.empty((num_weights, cols), dtype=torch.float32, device=grad.device)
    elementwise(identity, 0, common=sums.dtype, out=sums)
    if mode == 2:
        n = min(grad.shape[0], bag_size.shape[0]) * cols
        strides = grad.stride(), maximum.stride(), bag_size.stride(0)
        bag_max_kernel[(triton.cdiv(n, 1024),)](
            grad, bag_size, maximum, sums, n, cols, num_weights, *strides, BLOCK=1024
        )
    else:
        counts = None
        if by_frequency:
            counts = torch.empty(num_weights, dtype=torch.int32, device=grad.device)
            elementwise(identity, 0, common=torch.int32, out=counts)
            numbers = plain(m), plain(num_weights), plain(indices.stride(0))
            bag_count_kernel[(triton.cdiv(m, 1024),)](indices, counts, *numbers, BLOCK=1024)
        add_bag_rows(
            grad, indices, None, offsets, offset2bag, bag_size, weights, counts, sums, mode, padding_idx, False
        )
    return out if exact else elementwise(identity, sums, out=out)
