"""Embedding bags: sum, mean or maximum over the table rows that belong to a bag.

A program instance takes BAGS bags. It adds the rows of their items up in fp32 (fp64 for fp64), or keeps each
column's largest value and its index (mode 2). Each item's bag is recorded in offset2bag, except in the
case that `_sums_only` describes, in which ATen leaves it empty.
"""

import torch
import triton
import triton.language as tl
from blocks.types import compute_types, identical_dtypes

BAG_TILE = 2048  # elements per program instance
BAG_PROGRAMS = 512  # program instances before tiles grow: almost four for each of the 132 processors
WARP_ELEMENTS = 256  # elements per warp, 8 for each lane
LANE_BYTES = 16  # bytes that a lane reads from a row: the widest load
BAG_LANES = 512  # most lanes for a bag's rows in a program instance: 16 warps
ALL_BAG_LANES = 16384  # lanes over all bags beyond which items are not spread: almost four warps for each processor


@triton.jit
def bounds_of(offsets_ptr, stride, bag, known, ends, m):
    """Return each bag's first item and its item count.

    Bag b ends at offsets[b + 1] if b + 1 < ends, and otherwise at m, the item count.
    """
    begin = tl.load(offsets_ptr + bag * stride, mask=known, other=0).to(tl.int64)
    end = tl.load(offsets_ptr + (bag + 1) * stride, mask=known & (bag + 1 < ends), other=m).to(tl.int64)
    return begin, tl.where(known, end - begin, 0)


@triton.jit
def items_of(indices_ptr, stride, begin, row, length):
    """Return the items at these rows of the bags, a mask of the valid ones, and their table indices."""
    inside = row < length
    item = begin + row
    return item, inside, tl.load(indices_ptr + item * stride, mask=inside, other=0).to(tl.int64)


@triton.jit
def bag_sums_kernel(
    weight_ptr,
    indices_ptr,
    offsets_ptr,
    weights_ptr,
    out_ptr,
    offset2bag_ptr,
    bag_size_ptr,
    maximum_ptr,
    m,
    bags,
    ends,
    sizes,
    cols,
    height,
    padding_idx,
    weight_stride,
    indices_stride,
    offsets_stride,
    weights_stride,
    OPMATH: tl.constexpr,
    MEAN: tl.constexpr,
    DEEP: tl.constexpr,
    BAGS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute each bag's sum, or the mean (MEAN).

    A lane reads 16 bytes from a row and adds up all items of its bag. It loads DEEP items at a time, while the
    next indices are already being loaded. Only if there are few bags are their items spread over ROWS lanes,
    whose sums are added at the end.

    Args:
        weight_ptr: [height, cols] table, read.
        indices_ptr: [m] table row per item, read.
        offsets_ptr: First item per bag, read.
        weights_ptr: [m] per-sample weights or None, read.
        out_ptr: [bags, cols], contiguous, written.
        offset2bag_ptr: [m] bag per item, written, or None.
        bag_size_ptr: [sizes], written: the item count if MEAN, else 0.
        maximum_ptr: [sizes], written: the same as `bag_size`.
        m: Item count.
        bags: Bag count.
        ends: Number of offsets that end a bag (see `bounds_of`).
        sizes: Length of `bag_size`.
        cols: Table columns.
        height: Table rows.
        padding_idx: Index whose items are skipped.
        weight_stride: Strides of `weight`.
        indices_stride: Stride of `indices`.
        offsets_stride: Stride of `offsets`.
        weights_stride: Stride of `weights`, or 0.
        OPMATH: Compute type.
        MEAN: Divide by the number of items that are not padding.
        DEEP: Items that a lane loads at a time.
        BAGS: Bags per program instance.
        ROWS: Lanes over which a bag's items are spread.
        BLOCK_N: Columns per program instance.
    """
    bag = tl.program_id(0).to(tl.int64) * BAGS + tl.arange(0, BAGS)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    known = bag < bags
    begin, length = bounds_of(offsets_ptr, offsets_stride, bag, known, ends, m)
    tagged = tl.where(tl.program_id(1) == 0, m, 0)  # only the first column tile records each item's bag
    slots = tl.arange(0, DEEP)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    acc = tl.zeros([BAGS, ROWS, BLOCK_N], OPMATH)
    count = tl.zeros([BAGS, ROWS], tl.int64)
    first, size, row = begin[None, :, None], length[None, :, None], slots.to(tl.int64)[:, None, :]
    item, inside, index = items_of(indices_ptr, indices_stride, first, row, size)
    for _ in range(0, tl.max(length, 0), DEEP * ROWS):
        row += DEEP * ROWS
        # Load the next indices before the rows of this step, so that their latencies overlap.
        next_item, next_inside, next_index = items_of(indices_ptr, indices_stride, first, row, size)
        used = inside & (index != padding_idx)
        valid = used & (index >= 0) & (index < height)  # an index out of range adds nothing, but counts in the mean
        mask = valid[:, :, :, None] & (col < cols)[None, None, None, :]
        offset = (index * weight_stride[0])[:, :, :, None] + (col * weight_stride[1])[None, None, None, :]
        x = tl.load(weight_ptr + offset, mask=mask, other=0).to(OPMATH)
        if weights_ptr is not None:
            x = x * tl.load(weights_ptr + item * weights_stride, mask=used, other=0).to(OPMATH)[:, :, :, None]
        acc += tl.sum(x, 0)
        count += tl.sum(used.to(tl.int32), 0)
        if offset2bag_ptr is not None:
            tag = bag[None, :, None] + tl.zeros_like(item)
            tl.store(offset2bag_ptr + item, tag.to(offset2bag_ptr.dtype.element_ty), mask=inside & (item < tagged))
        item, inside, index = next_item, next_inside, next_index
    total, number = tl.sum(acc, 1), tl.sum(count, 1)
    if MEAN:
        total = total / tl.maximum(number, 1).to(OPMATH)[:, None]
    else:
        number = tl.zeros_like(number)
    mask = known[:, None] & (col < cols)[None, :]
    tl.store(out_ptr + bag[:, None] * cols + col[None, :], total.to(out_ptr.dtype.element_ty), mask=mask)
    if tl.program_id(1) == 0:
        stored_count = number.to(bag_size_ptr.dtype.element_ty)
        tl.store(bag_size_ptr + bag, stored_count, mask=bag < sizes)
        tl.store(maximum_ptr + bag, stored_count, mask=bag < sizes)


@triton.jit
def bag_maxima_kernel(
    weight_ptr,
    indices_ptr,
    offsets_ptr,
    weights_ptr,
    out_ptr,
    offset2bag_ptr,
    bag_size_ptr,
    maximum_ptr,
    m,
    bags,
    ends,
    sizes,
    cols,
    height,
    padding_idx,
    weight_stride,
    indices_stride,
    offsets_stride,
    weights_stride,
    OPMATH: tl.constexpr,
    BAGS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute the largest value in each column of a bag and its table index, one item per bag at a time.

    A NaN wins only if it is the bag's first item, because every comparison with it is false.

    Args:
        weight_ptr: [height, cols] table, read.
        indices_ptr: [m] table row per item, read.
        offsets_ptr: First item per bag, read.
        weights_ptr: [m] per-sample weights or None, read.
        out_ptr: [bags, cols], contiguous, written.
        offset2bag_ptr: [m] bag per item, written, or None.
        bag_size_ptr: [sizes], written: item count without padding.
        maximum_ptr: [bags, cols], contiguous, written: winning table index per element.
        m: Item count.
        bags: Bag count.
        ends: Number of offsets that end a bag (see `bounds_of`).
        sizes: Length of `bag_size`.
        cols: Table columns.
        height: Table rows.
        padding_idx: Index whose items are skipped.
        weight_stride: Strides of `weight`.
        indices_stride: Stride of `indices`.
        offsets_stride: Stride of `offsets`.
        weights_stride: Stride of `weights`, or 0.
        OPMATH: Compute type.
        BAGS: Bags per program instance.
        BLOCK_N: Columns per program instance.
    """
    bag = tl.program_id(0).to(tl.int64) * BAGS + tl.arange(0, BAGS)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    known = bag < bags
    begin, length = bounds_of(offsets_ptr, offsets_stride, bag, known, ends, m)
    tagged = tl.where(tl.program_id(1) == 0, m, 0)
    acc = tl.zeros([BAGS, BLOCK_N], OPMATH)
    winner = tl.zeros([BAGS, BLOCK_N], tl.int64)
    count = tl.zeros([BAGS], tl.int64)
    for row in range(0, tl.max(length, 0)):
        item, inside, index = items_of(indices_ptr, indices_stride, begin, row, length)
        used = inside & (index != padding_idx)
        valid = used & (index >= 0) & (index < height)
        mask = valid[:, None] & (col < cols)[None, :]
        offset = index[:, None] * weight_stride[0] + col[None, :] * weight_stride[1]
        x = tl.load(weight_ptr + offset, mask=mask, other=0).to(OPMATH)
        if weights_ptr is not None:
            x = x * tl.load(weights_ptr + item * weights_stride, mask=used, other=0).to(OPMATH)[:, None]
        better = used[:, None] & ((count == 0)[:, None] | (x > acc))
        acc = tl.where(better, x, acc)
        winner = tl.where(better, index[:, None], winner)
        count += used.to(tl.int64)
        if offset2bag_ptr is not None:
            tl.store(offset2bag_ptr + item, bag.to(offset2bag_ptr.dtype.element_ty), mask=inside & (item < tagged))
    mask = known[:, None] & (col < cols)[None, :]
    tl.store(out_ptr + bag[:, None] * cols + col[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)
    kind = bag_size_ptr.dtype.element_ty
    tl.store(maximum_ptr + bag[:, None] * cols + col[None, :], winner.to(kind), mask=mask)
    if tl.program_id(1) == 0:
        tl.store(bag_size_ptr + bag, count.to(kind), mask=bag < sizes)


def embedding_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, sizes=None):
    """Return (bags, offset2bag, bag sizes, indices of maxima), as `_embedding_bag` does.

    Args:
        weight: [height, cols] table.
        indices: int32 or int64, table row per item.
        offsets: int32 or int64, first item per bag.
        mode: 0 for sum, 1 for mean, 2 for max.
        per_sample_weights: Factor per item, with the dtype of `weight`, or None.
        include_last_offset: The last offset ends the last bag and begins no bag.
        padding_idx: Index whose items are skipped; negative for none.
        sizes: Length of the bag sizes, or None for one per bag.

    Raises:
        RuntimeError: If indices or offsets are not int32 or int64.
    """
    if per_sample_weights is not None:
        identical_dtypes(weight, per_sample_weights)
    if any([t.dtype not in (torch.int32, torch.int64) for t in (indices, offsets)]):
        raise RuntimeError(f"indices and offsets must be int32 or int64, got {indices.dtype} and {offsets.dtype}")
    m, cols = indices.shape[0], weight.shape[1]
    bags = offsets.shape[0] - 1 if include_last_offset else offsets.shape[0]
    unrecorded = _sums_only(weight, mode, per_sample_weights, padding_idx)
    ends = offsets.shape[0] if unrecorded else bags  # offsets that end a bag
    sizes = bags if sizes is None else sizes
    dtype = offsets.dtype if offsets.dtype == indices.dtype else torch.int64
    device = weight.device
    out = torch.empty((bags, cols), dtype=weight.dtype, device=device)
    offset2bag = torch.empty(0 if unrecorded else m, dtype=dtype, device=device)
    bag_size = torch.empty(sizes, dtype=dtype, device=device)
    maximum = torch.empty((bags, cols) if mode == 2 else sizes, dtype=dtype, device=device)
    arguments = (
        weight,
        indices,
        offsets,
        per_sample_weights,
        out,
        None if unrecorded else offset2bag,
        bag_size,
        maximum,
        m,
        bags,
        ends,
        sizes,
        cols,
        weight.shape[0],
        padding_idx,
        weight.stride(),
        indices.stride(0),
        offsets.stride(0),
        0 if per_sample_weights is None else per_sample_weights.stride(0),
        compute_types(weight.dtype)[1],
    )
    DEEP, BAGS, ROWS, BLOCK_N, num_warps = _bags_tile(m, bags, cols, weight.element_size(), mode == 2)
    grid = triton.cdiv(max(bags, sizes), BAGS), max(triton.cdiv(cols, BLOCK_N), 1)
    if mode == 2:
        bag_maxima_kernel[grid](*arguments, BAGS, BLOCK_N, num_warps=num_warps)
    else:
        bag_sums_kernel[grid](*arguments, mode == 1, DEEP, BAGS, ROWS, BLOCK_N, num_warps=num_warps)
    return out, offset2bag, bag_size, maximum


def _bags_tile(m, bags, cols, itemsize, maxima):
    """Return DEEP, BAGS, ROWS, BLOCK_N and the warp count.

    For sums, a lane reads 16 bytes from a row. A bag's items are spread over several lanes, up to ALL_BAG_LANES
    lanes in all and BAG_LANES per program instance. In fp64 a lane adds a bag's items in their order. For
    maxima, a program instance has about BAG_TILE elements, and fewer if few bags would leave a GPU idle.
    """
    BLOCK_N = min(triton.next_power_of_2(max(cols, 1)), 256)
    if maxima:
        BAGS = max(min(BAG_TILE // BLOCK_N, triton.next_power_of_2(max(bags // BAG_PROGRAMS, 1))), 1)
        return 1, BAGS, 1, BLOCK_N, max(1, min(BAGS * BLOCK_N // WARP_ELEMENTS, 8))
    lanes = max(BLOCK_N * itemsize // LANE_BYTES, 1)
    items = 1 if itemsize == 8 else triton.next_power_of_2(max(m // max(bags, 1), 1))
    DEEP = min(items, 8)
    all_lanes = lanes * triton.next_power_of_2(max(bags, 1))
    ROWS = max(min(items // DEEP, BAG_LANES // lanes, ALL_BAG_LANES // all_lanes), 1)
    BAGS = max(32 // (ROWS * lanes), 1)  # so that a warp has no idle lanes
    return DEEP, BAGS, ROWS, BLOCK_N, max(BAGS * ROWS * lanes // 32, 1)


def _sums_only(weight, mode, per_sample_weights, padding_idx):
    """Return True if ATen adds the rows up without recording each item's bag."""
    return (
        mode == 0
        and padding_idx < 0
        and weight.dtype != torch.float64
        and weight.stride(1) == 1
        and (per_sample_weights is None or per_sample_weights.stride(0) == 1)
    )
