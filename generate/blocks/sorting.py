"""Stable sorts along rows, with NaN last: short rows in one tile, longer ones by their keys' digits.

Keys are integers in element order, and ties are broken by position in the row. If only a few first elements
are wanted, each part of a row keeps that many, until one part is left.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.digits import sorted_by_digits
from blocks.leading import LEADING_PART, leading
from blocks.limits import INT32_MAX, SMALL_TENSOR
from blocks.offsets import TINY_TENSOR, integer, integer_value, reach, strided, walk
from blocks.order import keys_at
from blocks.row_walks import walk_rows

__all__ = ["sort_into", "sorted_keys", "sorted_order"]

SORT_TILE = 512  # elements per program; all pairs of them are compared
LARGEST_SORT_OFFSET = INT32_MAX - 16384  # for int32; 16384 leaves room for a tile's rows beyond the last


@triton.jit
def sort_tile_kernel(
    x_ptr,
    candidates,
    outs,
    m,
    n,
    kept,
    across,
    along,
    step,
    LAST: tl.constexpr,
    HOW: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Sort a tile and store the first `kept` elements with indices if LAST, else keys and positions.

    An element's rank is the number of elements in its row that come before it.

    Args:
        x_ptr: m rows with n elements, read; `across` walks the rows and `along` the elements.
        candidates: (keys, positions) from an earlier pass, [m, n] each, read, or () to sort x.
        outs: (elements, indices) if LAST, else (keys, positions) with [m, n] each, written.
        m: number of rows, encoded by `integer`.
        n: elements per row, encoded by `integer`.
        kept: elements to store per row if LAST, encoded by `integer`.
        across: walk from row to row, for x and, if LAST, the results.
        along: walk along a row of x.
        step: result stride along the sorted dimension, encoded by `integer`.
        LAST: True to store the final elements and indices.
        HOW: (DESCENDING; PLAIN, True if integers are encoded by `plain`; INDEX, the type for offsets).
        TILE: (rows, columns) per program; a row fits the columns.
        CHUNK: columns that are compared at once.
    """
    m, n, kept = integer_value(m, HOW[1]), integer_value(n, HOW[1]), integer_value(kept, HOW[1])
    rows = tl.program_id(0).to(HOW[2]) * TILE[0] + tl.arange(0, TILE[0])
    cols = tl.arange(0, TILE[1]).to(HOW[2])
    base = rows[:, None] * n
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    x_ptr += strided(rows, across[0], across[1][0], False, HOW[1])[:, None]
    key = keys_at(x_ptr, candidates, base, cols[None, :], mask, along, HOW[0], HOW[1])
    rank = tl.zeros(TILE, tl.int32)
    for start in range(0, n, CHUNK):
        other_cols = start + tl.arange(0, CHUNK).to(HOW[2])
        inside = (rows < m)[:, None] & (other_cols < n)[None, :]
        other_key = keys_at(x_ptr, candidates, base, other_cols[None, :], inside, along, HOW[0], HOW[1])[:, None, :]
        earlier = (other_cols[None, :] < cols[:, None])[None, :, :]
        # ties are broken by column, so ranks in a row are all different and stores cannot collide
        before = (other_key < key[:, :, None]) | ((other_key == key[:, :, None]) & earlier)
        rank += tl.sum((before & inside[:, None, :]).to(tl.int32), 2)
    item = tl.broadcast_to(cols[None, :], TILE)
    if len(candidates) > 0:
        item = tl.load(candidates[1] + base + cols[None, :], mask=mask, other=0)
    if LAST:
        mask = mask & (rank < kept)
        value = tl.load(x_ptr + strided(item, along[0], along[1][0], False, HOW[1]), mask=mask)
        target = strided(rows, across[0], across[1][1], False, HOW[1])[:, None]
        target += rank.to(HOW[2]) * integer_value(step, HOW[1])
        tl.store(outs[0] + target, value, mask=mask)
        tl.store(outs[1] + target, item.to(tl.int64), mask=mask)
    else:
        tl.store(outs[0] + base + rank, key, mask=mask)
        tl.store(outs[1] + base + rank, item, mask=mask)


def sort_into(x, dim, outs, descending=False):
    """Store the first sorted elements of x along dim and their int64 indices in two tensors with equal strides.

    The tensors' size along dim decides how many elements are kept.
    """
    if outs[0].numel():
        x, targets = (x, outs) if x.dim() else (x.unsqueeze(0), [out.unsqueeze(0) for out in outs])
        _sort(x, [dim % x.dim()], targets, targets[0].shape[dim], descending)
    return tuple(outs)


def sorted_keys(x, dims):
    """Return the keys of x sorted over these dimensions and their flat indices there, as two [rows, n] tensors.

    x must have elements.
    """
    return _sort(x, dims, None, math.prod([x.shape[d] for d in dims]), False)


def sorted_order(x):
    """Return the flat indices of all elements in ascending order, or None if there are none."""
    return sorted_keys(x, list(range(x.dim())))[1].view(-1) if x.numel() else None


def _sort(x, dims, outs, kept, descending):
    row_dims = [d for d in range(x.dim()) if d not in dims]
    n = math.prod([x.shape[d] for d in dims])
    m = x.numel() // n
    PLAIN = m * n < SMALL_TENSOR
    wide = reach(x.shape, [x.stride()]) > LARGEST_SORT_OFFSET or m * n > LARGEST_SORT_OFFSET
    wide = wide or (outs is not None and reach(outs[0].shape, [outs[0].stride()]) > LARGEST_SORT_OFFSET)
    along = walk([x], dims, PLAIN)
    across = walk_rows([x] if outs is None else [x, outs[0]], row_dims, PLAIN)
    HOW = descending, PLAIN, tl.int64 if wide else tl.int32
    dtypes = (
        torch.int64 if x.dtype in (torch.int64, torch.float64) else torch.int32,
        torch.int64 if wide else torch.int32,
    )
    leading_items = ()  # () stands for x itself
    while n > SORT_TILE and 2 * kept <= n and (4 * kept <= LEADING_PART or n <= LEADING_PART):
        leading_items, n = leading(x, leading_items, (m, n, kept), (across, along), dtypes, HOW)
    steps = across, along, integer(outs[0].stride(dims[0]) if outs is not None else 1, PLAIN)
    if n > SORT_TILE:
        return sorted_by_digits(x, leading_items, outs, (m, n, kept), steps, dtypes, HOW)
    outs = outs or [torch.empty((m, n), dtype=d, device=x.device) for d in dtypes]
    WIDTH = 64 if n <= 64 else SORT_TILE if m * n < TINY_TENSOR else triton.next_power_of_2(n)
    BLOCK_M = SORT_TILE // WIDTH
    sort_tile_kernel[(triton.cdiv(m, BLOCK_M),)](
        x,
        leading_items,
        tuple(outs),
        *[integer(size, PLAIN) for size in (m, n, kept)],
        *steps,
        LAST=len(across[1]) > 1,
        TILE=(BLOCK_M, WIDTH),
        CHUNK=32,
        num_warps=8,
        HOW=HOW,
    )
    return outs
