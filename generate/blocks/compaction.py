"""Compaction: coordinates of the selected elements, in their order.

Elements are counted per block, then the counts are summed. The total is read back to the host, because it
determines the result's size.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import plain, plain_value, strided

COMPACTION_BLOCK = 1024  # elements per program instance; counts and ranks must have the same blocks


@triton.jit
def count_kernel(x_ptr, counts_ptr, n, value, shape, stride, BLOCK: tl.constexpr):
    """Count the elements that differ from `value` in each block.

    Args:
        x_ptr: n integers or bools, read.
        counts_ptr: [blocks] int64, written.
        n: Element count, encoded by `plain`.
        value: Value to leave out.
        shape: Shape of x, encoded by `plain`.
        stride: Strides of x, encoded by `plain`.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(n)
    is_selected = mask & (tl.load(x_ptr + strided(i, shape, stride, False), mask=mask, other=0).to(tl.int64) != value)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(is_selected.to(tl.int64), 0))


@triton.jit
def starts_kernel(counts_ptr, starts_ptr, n, BLOCK: tl.constexpr):
    """Compute the exclusive prefix sum of n counts, followed by the total.

    One program instance runs it.

    Args:
        counts_ptr: [n] int64, read.
        starts_ptr: [n + 1] int64, written.
        n: Number of counts, encoded by `plain`.
        BLOCK: Counts per step.
    """
    n = plain_value(n)
    total = tl.zeros([], tl.int64)  # invariant: the sum of all counts before `first`
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        count = tl.load(counts_ptr + i, mask=i < n, other=0)
        tl.store(starts_ptr + i, total + tl.cumsum(count, 0) - count, mask=i < n)
        total += tl.sum(count, 0)
    tl.store(starts_ptr + n, total)


@triton.jit
def coordinates_kernel(x_ptr, starts_ptr, out_ptr, n, count, value, shape, stride, BLOCK: tl.constexpr):
    """Write the coordinates of each selected element to its rank.

    Args:
        x_ptr: n integers or bools, read.
        starts_ptr: [blocks + 1], rank of each block's first selected element, read.
        out_ptr: [dims, count] int64, written.
        n: Element count, encoded by `plain`.
        count: Selected element count, encoded by `plain`.
        value: Value to leave out.
        shape: Shape of x, encoded by `plain`.
        stride: Strides of x, encoded by `plain`.
        BLOCK: Elements per program instance, as in `count_kernel`.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(n)
    is_selected = mask & (tl.load(x_ptr + strided(i, shape, stride, False), mask=mask, other=0).to(tl.int64) != value)
    # ranks follow the order of the elements, so that the coordinates are sorted
    rank = tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(is_selected.to(tl.int64), 0) - 1
    for k in tl.static_range(len(shape) - 1, -1, -1):
        tl.store(out_ptr + k * plain_value(count) + rank, i % plain_value(shape[k]), mask=is_selected)
        i = i // plain_value(shape[k])


def starts_of(counts):
    """Return the exclusive prefix sum of int64 counts, followed by their total: [n + 1]."""
    n = counts.shape[0]
    starts = torch.empty(n + 1, dtype=torch.int64, device=counts.device)
    starts_kernel[(1,)](counts, starts, plain(n), BLOCK=1024)
    return starts


def coordinates(x, value):
    """Return one index tensor per dimension for the elements of x (integers or bools) that differ from `value`.

    Their count is read from the device.
    """
    n, shape, stride = plain(x.numel()), tuple([plain(s) for s in x.shape]), tuple([plain(s) for s in x.stride()])
    blocks = triton.cdiv(x.numel(), COMPACTION_BLOCK)
    counts = torch.empty(blocks, dtype=torch.int64, device=x.device)
    count_kernel[(blocks,)](x, counts, n, value, shape, stride, BLOCK=COMPACTION_BLOCK)
    starts = starts_of(counts)
    count = starts.select(0, blocks).item()
    out = torch.empty((len(shape), count), dtype=torch.int64, device=x.device)
    coordinates_kernel[(blocks,)](x, starts, out, n, plain(count), value, shape, stride, BLOCK=COMPACTION_BLOCK)
    return out.unbind(0)
