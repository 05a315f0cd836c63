"""Bags of embeddings: rows of a table, of which those of a bag are summed, averaged or compared.

A program takes BAGS bags, ROWS items of each at a time, and adds their rows up in fp32 (fp64 for fp64), or keeps the
largest (2) and its index. The bags of the items are recorded unless rows are plainly added up, without padding, in 16
or 32 bits.
"""

import torch
import triton
import triton.language as tl
from blocks.types import compute_types


@triton.jit
def bags_kernel(
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
    MODE: tl.constexpr,
    BAGS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    bag = tl.program_id(0).to(tl.int64) * BAGS + tl.arange(0, BAGS)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    known = bag < bags
    begin = tl.load(offsets_ptr + bag * offsets_stride, mask=known, other=0).to(tl.int64)
    end = tl.load(offsets_ptr + (bag + 1) * offsets_stride, mask=known & (bag + 1 < ends), other=m).to(tl.int64)
    length = tl.where(known, end - begin, 0)
    tagged = tl.where(tl.program_id(1) == 0, m, 0)
    acc = tl.zeros([BAGS, BLOCK_N], OPMATH)
    winner = tl.zeros([BAGS, BLOCK_N], tl.int64)
    count = tl.zeros([BAGS], tl.int64)
    for start in range(0, tl.max(length, 0), ROWS):
        row = start + tl.arange(0, ROWS).to(tl.int64)
        inside = row[None, :] < length[:, None]
        item = begin[:, None] + row[None, :]
        index = tl.load(indices_ptr + item * indices_stride, mask=inside, other=0).to(tl.int64)
        used = inside & (index != padding_idx)
        valid = used & (index >= 0) & (index < height)  # an index out of range adds nothing
        mask = valid[:, :, None] & (col < cols)[None, None, :]
        offset = index[:, :, None] * weight_stride[0] + col[None, None, :] * weight_stride[1]
        x = tl.load(weight_ptr + offset, mask=mask, other=0).to(OPMATH)
        if weights_ptr is not None:
            x = x * tl.load(weights_ptr + item * weights_stride, mask=used, other=0).to(OPMATH)[:, :, None]
        if MODE == 2:  # an item at a time
            x = tl.sum(x, 1)
            better = (tl.sum(used.to(tl.int32), 1) > 0)[:, None] & ((count == 0)[:, None] | (x > acc))
            acc = tl.where(better, x, acc)
            winner = tl.where(better, tl.sum(index, 1)[:, None], winner)
        else:
            acc += tl.sum(x, 1)
        count += tl.sum(used.to(tl.int64), 1)
        if offset2bag_ptr is not None:
            tag = bag[:, None] + tl.zeros_like(item)
            tl.store(offset2bag_ptr + item, tag.to(offset2bag_ptr.dtype.element_ty), mask=inside & (item < tagged))
    if MODE == 1:
        acc = acc / tl.maximum(count, 1).to(acc.dtype)[:, None]
    mask = known[:, None] & (col < cols)[None, :]
    tl.store(out_ptr + bag[:, None] * cols + col[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)
    if MODE == 0:
        count = tl.zeros_like(count)
    kind = bag_size_ptr.dtype.element_ty
    if MODE == 2:
        tl.store(maximum_ptr + bag[:, None] * cols + col[None, :], winner.to(kind), mask=mask)
    if tl.program_id(1) == 0:
        tl.store(bag_size_ptr + bag, count.to(kind), mask=bag < sizes)
        if MODE != 2:
            tl.store(maximum_ptr + bag, count.to(kind), mask=bag < sizes)


def embedding_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, sizes=None):
    """(bags, bag of each item, sizes, indices of maxima); sizes: how many, by default one for each bag."""
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
    BAGS, ROWS, BLOCK_N, num_warps = _bags_tile(m, bags, cols, mode)
    bags_kernel[(triton.cdiv(max(bags, sizes), BAGS), max(triton.cdiv(cols, BLOCK_N), 1))](
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
        OPMATH=compute_types(weight.dtype)[1],
        MODE=mode,
        BAGS=BAGS,
        ROWS=ROWS,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )
    return out, offset2bag, bag_size, maximum


def _bags_tile(m, bags, cols, mode):
    """Bags, items of a bag at a time and columns of a program, and its warps: about 2048 elements, fewer where few bags
    would leave it idle; the maximum takes an item at a time."""
    BLOCK_N = min(triton.next_power_of_2(max(cols, 1)), 256)
    ROWS = 1 if mode == 2 else min(triton.next_power_of_2(max(m // max(bags, 1), 1)), 8)
    BAGS = max(min(2048 // (BLOCK_N * ROWS), triton.next_power_of_2(max(bags // 512, 1))), 1)
    return BAGS, ROWS, BLOCK_N, max(1, min(BAGS * ROWS * BLOCK_N // 256, 8))


def _sums_only(weight, mode, per_sample_weights, padding_idx):
    """Where ATen adds rows up without recording the bags of the items."""
    return (
        mode == 0
        and padding_idx < 0
        and weight.dtype != torch.float64
        and weight.stride(1) == 1
        and (per_sample_weights is None or per_sample_weights.stride(0) == 1)
    )
