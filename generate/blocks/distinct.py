"""Distinct elements, or slices, of those that are equal to the one before them in an order.

Where a new one begins is counted by block; how many there are is read back, since it is a size. NaN is equal to none.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.compaction import starts_of
from blocks.offsets import strided, walk

__all__ = ["distinct_elements", "distinct_slices", "item_at", "line_of"]

DISTINCT_BLOCK = 512  # slices that one program looks at


@triton.jit
def item_at(order_ptr, i, mask):
    """What is the i-th in an order, None for their own."""
    item = i
    if order_ptr is not None:
        item = tl.load(order_ptr + i, mask=mask, other=0).to(tl.int64)
    return item


@triton.jit
def line_of(x_ptr, item, along):
    """Pointers to slices."""
    return (x_ptr + strided(item, along[0], along[1][0], False, False))[:, None]


@triton.jit
def begins_kernel(
    x_ptr, order_ptr, begins_ptr, counts_ptr, n, width, along, across, BLOCK: tl.constexpr, CHUNK: tl.constexpr
):
    """Whether the i-th slice differs from the one before it, and how many of a block do."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    compared = (i > 0) & (i < n)
    here = line_of(x_ptr, item_at(order_ptr, i, compared), along)
    before = line_of(x_ptr, item_at(order_ptr, i - 1, compared), along)
    differs = (i == 0).to(tl.int32)
    for start in range(0, width, CHUNK):
        cols = start + tl.arange(0, CHUNK)
        mask = compared[:, None] & (cols < width)[None, :]
        offset = strided(cols.to(tl.int64), across[0], across[1][0], False, False)[None, :]
        unequal = tl.load(here + offset, mask=mask, other=0) != tl.load(before + offset, mask=mask, other=0)
        differs = tl.maximum(differs, tl.max((unequal & mask).to(tl.int32), 1))
    tl.store(begins_ptr + i, differs.to(tl.int8), mask=i < n)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(differs.to(tl.int64), 0))


@triton.jit
def numbered_kernel(order_ptr, begins_ptr, starts_ptr, firsts_ptr, inverse_ptr, n, BLOCK: tl.constexpr):
    """Where each distinct one begins, behind the last n; and of each item the number of its distinct one."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    begins = tl.load(begins_ptr + i, mask=i < n, other=0).to(tl.int64)
    number = tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(begins, 0) - 1
    tl.store(firsts_ptr + number, i, mask=begins != 0)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(firsts_ptr + tl.load(starts_ptr + tl.num_programs(0)), n)
    if inverse_ptr is not None:
        tl.store(inverse_ptr + item_at(order_ptr, i, i < n), number, mask=i < n)


@triton.jit
def gathered_kernel(x_ptr, order_ptr, firsts_ptr, out_ptr, counts_ptr, size, width, along, across, BLOCK: tl.constexpr):
    """The distinct ones, and how often each is there."""
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
    """(values, counts) of the distinct slices of x along these dimensions, in an order of them, None for their own.

    values: [how many, the size of a slice]; inverse: a contiguous tensor to fill with the number of each, or None;
    counted: whether counts are wanted, else they are empty.
    """
    n = math.prod([x.shape[d] for d in dims])
    others = [d for d in range(x.dim()) if d not in dims]
    width = math.prod([x.shape[d] for d in others])
    if not n or not width:
        none = [torch.empty(shape, dtype=d, device=x.device) for shape, d in (((0, width), x.dtype), (0, torch.int64))]
        return tuple(none)
    blocks = triton.cdiv(n, DISTINCT_BLOCK)
    begins = torch.empty(n, dtype=torch.int8, device=x.device)
    counts = torch.empty(blocks, dtype=torch.int64, device=x.device)
    firsts = torch.empty(n + 1, dtype=torch.int64, device=x.device)
    steps = walk([x], dims, False), walk([x], others, False)
    chunk = 1 if width == 1 else 16
    begins_kernel[(blocks,)](x, order, begins, counts, n, width, *steps, BLOCK=DISTINCT_BLOCK, CHUNK=chunk)
    starts = starts_of(counts)
    numbered_kernel[(blocks,)](order, begins, starts, firsts, inverse, n, BLOCK=DISTINCT_BLOCK)
    found = starts.select(0, blocks).item()
    values = torch.empty((found, width), dtype=x.dtype, device=x.device)
    times = torch.empty(found if counted else 0, dtype=torch.int64, device=x.device)
    grid = (triton.cdiv(found * width, 1024),)
    gathered_kernel[grid](
        x, order, firsts, values, times if counted else None, found * width, width, *steps, BLOCK=1024
    )
    return values, times


def distinct_slices(x, dim, order):
    """The distinct slices of x along dim, as ATen lays them out, which of them each is, and how often each is there."""
    shape = [n for d, n in enumerate(x.shape) if d != dim % x.dim()]
    if not math.prod(shape):
        raise RuntimeError(f"slices of {tuple(x.shape)} along {dim} are empty")
    inverse = torch.empty(x.shape[dim], dtype=torch.int64, device=x.device)
    values, counts = distinct(x, [dim % x.dim()], order, inverse, True)
    return values.view([values.shape[0], *shape]).movedim(0, dim), inverse, counts


def distinct_elements(x, order, inverse, counted):
    """(values, inverse, counts) of all elements of x in an order; what is not wanted is empty."""
    places = torch.empty(x.shape if inverse else 0, dtype=torch.int64, device=x.device)
    values, counts = distinct(x, list(range(x.dim())), order, places if inverse else None, counted)
    return values.view(-1), places, counts
