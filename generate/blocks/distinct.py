"""Distinct elements or slices: those that differ from their predecessor in an order.

Used by the unique kernels. The beginnings of new groups are counted per block. The number of groups is read
back to the host, because it is a size. NaN differs from everything, itself included.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.compaction import starts_of
from blocks.offsets import strided, walk

__all__ = ["distinct_elements", "distinct_slices", "item_at", "line_of"]

DISTINCT_BLOCK = 512  # slices per program instance


@triton.jit
def item_at(order_ptr, i, mask):
    """Return the item at position i in an order, or i itself if order_ptr is None."""
    item = i
    if order_ptr is not None:
        item = tl.load(order_ptr + i, mask=mask, other=0).to(tl.int64)
    return item


@triton.jit
def line_of(x_ptr, item, along):
    """Return pointers to the slices, as a column."""
    return (x_ptr + strided(item, along[0], along[1][0], False, False))[:, None]


@triton.jit
def begins_kernel(
    x_ptr, order_ptr, begins_ptr, counts_ptr, n, width, along, across, BLOCK: tl.constexpr, CHUNK: tl.constexpr
):
    """Mark the slices that differ from their predecessor, and count them per block.

    Args:
        x_ptr: Tensor with the slices, read.
        order_ptr: [n] int64, order of the slices, or None, read.
        begins_ptr: [n] int8, written.
        counts_ptr: [blocks] int64, written.
        n: Number of slices.
        width: Elements per slice.
        along: `walk` over the slices.
        across: `walk` within a slice.
        BLOCK: Slices per program instance.
        CHUNK: Elements per step.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    compared = (i > 0) & (i < n)
    current = line_of(x_ptr, item_at(order_ptr, i, compared), along)
    before = line_of(x_ptr, item_at(order_ptr, i - 1, compared), along)
    differs = (i == 0).to(tl.int32)
    for start in range(0, width, CHUNK):
        cols = start + tl.arange(0, CHUNK)
        mask = compared[:, None] & (cols < width)[None, :]
        offset = strided(cols.to(tl.int64), across[0], across[1][0], False, False)[None, :]
        unequal = tl.load(current + offset, mask=mask, other=0) != tl.load(before + offset, mask=mask, other=0)
        differs = tl.maximum(differs, tl.max((unequal & mask).to(tl.int32), 1))
    tl.store(begins_ptr + i, differs.to(tl.int8), mask=i < n)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(differs.to(tl.int64), 0))


@triton.jit
def numbered_kernel(order_ptr, begins_ptr, starts_ptr, firsts_ptr, inverse_ptr, n, BLOCK: tl.constexpr):
    """Write the first position of each group, with n behind the last one, and each item's group number.

    Args:
        order_ptr: [n] int64, order of the slices, or None, read.
        begins_ptr: [n] int8, marks from `begins_kernel`, read.
        starts_ptr: [blocks + 1] int64, prefix sums of the counts from `begins_kernel`, read.
        firsts_ptr: [n + 1] int64, written.
        inverse_ptr: [n] int64 or None, written.
        n: Number of slices.
        BLOCK: Slices per program instance, as in `begins_kernel`.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    begins = tl.load(begins_ptr + i, mask=i < n, other=0).to(tl.int64)
    number = tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(begins, 0) - 1
    tl.store(firsts_ptr + number, i, mask=begins != 0)
    # n behind the last group, so that group sizes are differences
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(firsts_ptr + tl.load(starts_ptr + tl.num_programs(0)), n)
    if inverse_ptr is not None:
        tl.store(inverse_ptr + item_at(order_ptr, i, i < n), number, mask=i < n)


@triton.jit
def gathered_kernel(x_ptr, order_ptr, firsts_ptr, out_ptr, counts_ptr, size, width, along, across, BLOCK: tl.constexpr):
    """Copy the first slice of each group, and write the group sizes.

    Args:
        x_ptr: Tensor with the slices, read.
        order_ptr: Order of the slices, or None, read.
        firsts_ptr: First position of each group, read.
        out_ptr: [groups, width], written.
        counts_ptr: [groups] int64 or None, written.
        size: Elements of out.
        width: Elements per slice.
        along: `walk` over the slices.
        across: `walk` within a slice.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    number, col = i // width, i % width
    first = tl.load(firsts_ptr + number, mask=mask, other=0)
    x_ptr += strided(item_at(order_ptr, first, mask), along[0], along[1][0], False, False)
    x = tl.load(x_ptr + strided(col, across[0], across[1][0], False, False), mask=mask)
    tl.store(out_ptr + i, x, mask=mask)
    if counts_ptr is not None:
        end = tl.load(firsts_ptr + number + 1, mask=mask, other=0)
        tl.store(counts_ptr + number, end - first, mask=mask & (col == 0))


def distinct(x, dims, order, inverse, counted):
    """Return (values, counts) for the distinct slices of x.

    Args:
        x: Tensor.
        dims: Dimensions that enumerate the slices.
        order: Sorted order of the slices, or None for their own.
        inverse: Contiguous int64 tensor that receives each slice's group number, or None.
        counted: Compute the counts; otherwise they are empty.

    Returns:
        values [groups, slice size], and int64 counts.
    """
    n = math.prod([x.shape[d] for d in dims])
    inner_dims = [d for d in range(x.dim()) if d not in dims]
    width = math.prod([x.shape[d] for d in inner_dims])
    if not n or not width:
        empty = [torch.empty(shape, dtype=d, device=x.device) for shape, d in (((0, width), x.dtype), (0, torch.int64))]
        return tuple(empty)
    blocks = triton.cdiv(n, DISTINCT_BLOCK)
    begins = torch.empty(n, dtype=torch.int8, device=x.device)
    counts = torch.empty(blocks, dtype=torch.int64, device=x.device)
    firsts = torch.empty(n + 1, dtype=torch.int64, device=x.device)
    steps = walk([x], dims, False), walk([x], inner_dims, False)
    chunk = 1 if width == 1 else 16  # single elements would leave 15 of 16 lanes idle
    begins_kernel[(blocks,)](x, order, begins, counts, n, width, *steps, BLOCK=DISTINCT_BLOCK, CHUNK=chunk)
    starts = starts_of(counts)
    numbered_kernel[(blocks,)](order, begins, starts, firsts, inverse, n, BLOCK=DISTINCT_BLOCK)
    groups = starts.select(0, blocks).item()
    values = torch.empty((groups, width), dtype=x.dtype, device=x.device)
    repeats = torch.empty(groups if counted else 0, dtype=torch.int64, device=x.device)
    grid = (triton.cdiv(groups * width, 1024),)
    gathered_kernel[grid](
        x, order, firsts, values, repeats if counted else None, groups * width, width, *steps, BLOCK=1024
    )
    return values, repeats


def distinct_slices(x, dim, order):
    """Return (values, inverse, counts) for the distinct slices of x along dim, in ATen's layout.

    Raises RuntimeError if the slices are empty.
    """
    shape = [n for d, n in enumerate(x.shape) if d != dim % x.dim()]
    if not math.prod(shape):
        raise RuntimeError(f"{tuple(x.shape)} has empty slices along dimension {dim}")
    inverse = torch.empty(x.shape[dim], dtype=torch.int64, device=x.device)
    values, counts = distinct(x, [dim % x.dim()], order, inverse, True)
    return values.view([values.shape[0], *shape]).movedim(0, dim), inverse, counts


def distinct_elements(x, order, inverse, counted):
    """Return (values, inverse, counts) for all elements of x in an order; results that are not requested are empty."""
    places = torch.empty(x.shape if inverse else 0, dtype=torch.int64, device=x.device)
    values, counts = distinct(x, list(range(x.dim())), order, places if inverse else None, counted)
    return values.view(-1), places, counts
