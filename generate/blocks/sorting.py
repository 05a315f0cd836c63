"""Sorts along rows, stable, NaN behind all numbers: short rows in one tile, longer ones by their keys' digits.

What is compared are keys, integers in the order of the elements, and where these are equal the elements' places in
their row. Of rows of which only few first elements are wanted each part keeps as many, until one is left.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.digits import sorted_by_digits
from blocks.leading import LEADING_PART, leading
from blocks.offsets import integer, integer_value, reach, strided, walk
from blocks.order import keys_at
from blocks.row_walks import walk_rows

__all__ = ["sort_into", "sorted_keys", "sorted_order"]

SORT_TILE = 512  # elements that one program sorts; all pairs of them are compared


@triton.jit
def sort_tile_kernel(
    x_ptr,
    held,
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
    """The first `kept` of rows of a tile: elements and indices, or, not LAST, keys and places.

    An element's place is how many of its row come before it. held: keys and places that were kept before, rows of n,
    or () where the elements themselves are sorted. HOW: DESCENDING, PLAIN, INDEX.
    """
    m, n, kept = integer_value(m, HOW[1]), integer_value(n, HOW[1]), integer_value(kept, HOW[1])
    rows = tl.program_id(0).to(HOW[2]) * TILE[0] + tl.arange(0, TILE[0])
    cols = tl.arange(0, TILE[1]).to(HOW[2])
    base = rows[:, None] * n
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    x_ptr += strided(rows, across[0], across[1][0], False, HOW[1])[:, None]
    key = keys_at(x_ptr, held, base, cols[None, :], mask, along, HOW[0], HOW[1])
    to = tl.zeros(TILE, tl.int32)
    for start in range(0, n, CHUNK):
        others = start + tl.arange(0, CHUNK).to(HOW[2])
        inside = (rows < m)[:, None] & (others < n)[None, :]
        other = keys_at(x_ptr, held, base, others[None, :], inside, along, HOW[0], HOW[1])[:, None, :]
        earlier = (others[None, :] < cols[:, None])[None, :, :]
        before = (other < key[:, :, None]) | ((other == key[:, :, None]) & earlier)
        to += tl.sum((before & inside[:, None, :]).to(tl.int32), 2)
    item = tl.broadcast_to(cols[None, :], TILE)
    if len(held) > 0:
        item = tl.load(held[1] + base + cols[None, :], mask=mask, other=0)
    if LAST:
        mask = mask & (to < kept)
        value = tl.load(x_ptr + strided(item, along[0], along[1][0], False, HOW[1]), mask=mask)
        place = strided(rows, across[0], across[1][1], False, HOW[1])[:, None]
        place += to.to(HOW[2]) * integer_value(step, HOW[1])
        tl.store(outs[0] + place, value, mask=mask)
        tl.store(outs[1] + place, item.to(tl.int64), mask=mask)
    else:
        tl.store(outs[0] + base + to, key, mask=mask)
        tl.store(outs[1] + base + to, item, mask=mask)


def sort_into(x, dim, outs, descending=False):
    """The first elements of x along dim, sorted, and their indices, int64, in two tensors of the same strides, as many
    as these have place for."""
    if outs[0].numel():
        x, to = (x, outs) if x.dim() else (x.unsqueeze(0), [out.unsqueeze(0) for out in outs])
        _sort(x, [dim % x.dim()], to, to[0].shape[dim], descending)
    return tuple(outs)


def sorted_keys(x, dims):
    """The keys of x, which has elements, sorted over these dimensions, and their flat indices there: two tensors of
    two dimensions, of which the second is the sorted one."""
    return _sort(x, dims, None, math.prod([x.shape[d] for d in dims]), False)


def sorted_order(x):
    """The flat indices of all elements of x in ascending order; None where there are none."""
    return sorted_keys(x, list(range(x.dim())))[1].view(-1) if x.numel() else None


def _sort(x, dims, outs, kept, descending):
    others = [d for d in range(x.dim()) if d not in dims]
    n = math.prod([x.shape[d] for d in dims])
    m = x.numel() // n
    PLAIN, wide = m * n < 65536, reach(x.shape, [x.stride()]) > 2147467263 or m * n > 2147467263
    wide = wide or (outs is not None and reach(outs[0].shape, [outs[0].stride()]) > 2147467263)
    along = walk([x], dims, PLAIN)
    across = walk_rows([x] if outs is None else [x, outs[0]], others, PLAIN)
    HOW = descending, PLAIN, tl.int64 if wide else tl.int32
    dtypes = (
        torch.int64 if x.dtype in (torch.int64, torch.float64) else torch.int32,
        torch.int64 if wide else torch.int32,
    )
    held = ()
    while n > SORT_TILE and 2 * kept <= n and (4 * kept <= LEADING_PART or n <= LEADING_PART):
        held, n = leading(x, held, (m, n, kept), (across, along), dtypes, HOW)
    steps = across, along, integer(outs[0].stride(dims[0]) if outs is not None else 1, PLAIN)
    if n > SORT_TILE:
        return sorted_by_digits(x, held, outs, (m, n, kept), steps, dtypes, HOW)
    outs = outs or [torch.empty((m, n), dtype=d, device=x.device) for d in dtypes]
    WIDTH = 64 if n <= 64 else SORT_TILE if m * n < 4096 else triton.next_power_of_2(n)
    BLOCK_M = SORT_TILE // WIDTH
    sort_tile_kernel[(triton.cdiv(m, BLOCK_M),)](
        x,
        held,
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
