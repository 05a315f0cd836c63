"""Sorts along rows, stable, NaN behind all numbers: tiles, then pairs of runs that are merged.

What is compared are keys, integers in the order of the elements, and where these are equal the elements' places in
their row. Of long rows of which only the first elements are wanted each tile keeps as many, until one tile holds all.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import integer, integer_value, reach, strided, walk

__all__ = ["order_key", "sort_into", "sorted_keys", "sorted_order"]

SORT_TILE = 512  # elements that one program sorts; all pairs of them are compared


@triton.jit
def order_key(x, DESCENDING: tl.constexpr):
    """An integer of 32 or 64 bits, in the order of the elements: equal for both zeros; the largest for NaN."""
    if x.dtype.is_fp64():
        bits = x.to(tl.int64, bitcast=True)
        key = tl.where(x == 0, 0, bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF))
        key = tl.where(x != x, 0x7FFFFFFFFFFFFFFF, key)
    elif x.dtype.is_floating():
        x = x.to(tl.float32)
        bits = x.to(tl.int32, bitcast=True)
        key = tl.where(x == 0, 0, bits ^ ((bits >> 31) & 0x7FFFFFFF))
        key = tl.where(x != x, 0x7FFFFFFF, key)
    else:
        key = x if x.dtype.primitive_bitwidth == 64 else x.to(tl.int32)
    return ~key if DESCENDING else key


@triton.jit
def keys_at(x_ptr, held, base, cols, mask, along, DESCENDING: tl.constexpr, PLAIN: tl.constexpr):
    """The keys of elements of rows, of which held[0] has those of earlier sorts, if there were any, from `base` on."""
    if len(held) > 0:
        key = tl.load(held[0] + base + cols[None, :], mask=mask, other=0)
    else:
        x = tl.load(x_ptr + strided(cols, along[0], along[1][0], False, PLAIN)[None, :], mask=mask, other=0)
        key = order_key(x, DESCENDING)
    return key


@triton.jit
def sort_tiles_kernel(
    x_ptr,
    held,
    outs,
    m,
    n,
    kept,
    across,
    along,
    step,
    DESCENDING: tl.constexpr,
    LAST: tl.constexpr,
    PLAIN: tl.constexpr,
    INDEX: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """The first `kept` of each tile of rows: their keys and places, or, LAST, elements and indices.

    An element's place is how many of the tile come before it. held: keys and places that were kept before, rows of n,
    or () where the elements themselves are sorted.
    """
    m, n, kept = integer_value(m, PLAIN), integer_value(n, PLAIN), integer_value(kept, PLAIN)
    tile = tl.program_id(0) % tl.cdiv(n, TILE[1])
    rows = (tl.program_id(0) // tl.cdiv(n, TILE[1])).to(INDEX) * TILE[0] + tl.arange(0, TILE[0])
    begin = tile.to(INDEX) * TILE[1]
    cols = begin + tl.arange(0, TILE[1])
    base = rows[:, None] * n
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    x_ptr += strided(rows, across[0], across[1][0], False, PLAIN)[:, None]
    key = keys_at(x_ptr, held, base, cols, mask, along, DESCENDING, PLAIN)
    to = tl.zeros(TILE, tl.int32)
    for start in range(0, tl.minimum(n - begin, TILE[1]), CHUNK):
        others = begin + start + tl.arange(0, CHUNK)
        inside = (rows < m)[:, None] & (others < n)[None, :]
        other = keys_at(x_ptr, held, base, others, inside, along, DESCENDING, PLAIN)[:, None, :]
        earlier = (others[None, :] < cols[:, None])[None, :, :]
        before = (other < key[:, :, None]) | ((other == key[:, :, None]) & earlier)
        to += tl.sum((before & inside[:, None, :]).to(tl.int32), 2)
    item = tl.broadcast_to(cols[None, :], TILE)
    if len(held) > 0:
        item = tl.load(held[1] + base + cols[None, :], mask=mask, other=0)
    mask = mask & (to < kept)
    if LAST:
        value = tl.load(x_ptr + strided(item, along[0], along[1][0], False, PLAIN), mask=mask)
        place = strided(rows, across[0], across[1][1], False, PLAIN)[:, None]
        place += to.to(INDEX) * integer_value(step, PLAIN)
        tl.store(outs[0] + place, value, mask=mask)
        tl.store(outs[1] + place, item.to(tl.int64), mask=mask)
    else:
        left = n // TILE[1] * kept + tl.minimum(n % TILE[1], kept)
        place = rows[:, None] * left + tile * kept + to
        tl.store(outs[0] + place, key, mask=mask)
        tl.store(outs[1] + place, item, mask=mask)


@triton.jit
def merge_runs_kernel(
    x_ptr,
    held,
    outs,
    m,
    n,
    kept,
    width,
    depth,
    across,
    along,
    step,
    LAST: tl.constexpr,
    PLAIN: tl.constexpr,
    INDEX: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Of each pair of neighbouring runs of `width` one run, in m rows of n: an element's place is that in its own run
    and how many of the other come before it, which a binary search finds."""
    m, n, width = integer_value(m, PLAIN), integer_value(n, PLAIN), integer_value(width, PLAIN)
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = i < m * n
    row, col = i // n, i % n
    key, item = tl.load(held[0] + i, mask=mask, other=0), tl.load(held[1] + i, mask=mask, other=0)
    later = col // width % 2
    start = col // width * width + (1 - 2 * later) * width  # of the other run
    low, high = tl.minimum(start, n), tl.minimum(start + width, n)
    for _ in range(integer_value(depth, PLAIN)):
        middle = (low + high) // 2
        going = mask & (low < high)
        other = tl.load(held[0] + row * n + middle, mask=going, other=0)
        before = (other < key) | ((other == key) & (later == 1))
        low = tl.where(going & before, middle + 1, low)
        high = tl.where(going & ~before, middle, high)
    to = col + low - tl.minimum(start + later * width, n)
    if LAST:
        mask = mask & (to < integer_value(kept, PLAIN))
        x_ptr += strided(row, across[0], across[1][0], False, PLAIN)
        value = tl.load(x_ptr + strided(item, along[0], along[1][0], False, PLAIN), mask=mask)
        place = strided(row, across[0], across[1][1], False, PLAIN) + to * integer_value(step, PLAIN)
        tl.store(outs[0] + place, value, mask=mask)
        tl.store(outs[1] + place, item.to(tl.int64), mask=mask)
    else:
        tl.store(outs[0] + row * n + to, key, mask=mask)
        tl.store(outs[1] + row * n + to, item, mask=mask)


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
    wanted = n if outs is None or 4 * kept > SORT_TILE else kept
    WIDTH = 64 if n <= 64 else SORT_TILE if m * n < 4096 else min(triton.next_power_of_2(n), SORT_TILE)
    BLOCK_M = SORT_TILE // WIDTH
    along = walk([x], dims, PLAIN)
    across = walk([x] if outs is None else [x, outs[0]], others, PLAIN)
    steps = across, along, integer(outs[0].stride(dims[0]) if outs is not None else 1, PLAIN)
    INDEX = tl.int64 if wide else tl.int32
    dtypes = _key_dtype(x.dtype), torch.int64 if wide else torch.int32
    held = ()
    while True:
        last = n <= WIDTH and outs is not None
        first = min(wanted, WIDTH)
        left = n // WIDTH * first + min(n % WIDTH, first)
        to = outs if last else [torch.empty((m, left), dtype=d, device=x.device) for d in dtypes]
        sizes = integer(m, PLAIN), integer(n, PLAIN), integer(kept if last else first, PLAIN)
        sort_tiles_kernel[(triton.cdiv(m, BLOCK_M) * triton.cdiv(n, WIDTH),)](
            x,
            held,
            tuple(to),
            *sizes,
            *steps,
            DESCENDING=descending,
            LAST=last,
            TILE=(BLOCK_M, WIDTH),
            CHUNK=32,
            num_warps=8,
            PLAIN=PLAIN,
            INDEX=INDEX,
        )
        if n <= WIDTH or left == n:
            break
        held, n = tuple(to), left
    return to if n <= WIDTH else _merged(x, to, outs, (m, n, kept, WIDTH), steps, (PLAIN, INDEX))


def _merged(x, held, outs, sizes, steps, how):
    """Rows of sorted runs, merged until each is one."""
    m, n, kept, width = sizes
    spare = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in held]
    depth = len([k for k in range(63) if width >> k])
    while width < n:
        last = 2 * width >= n and outs is not None
        merge_runs_kernel[(triton.cdiv(m * n, 512),)](
            x,
            tuple(held),
            tuple(outs if last else spare),
            *[integer(size, how[0]) for size in (m, n, kept, width, depth)],
            *steps,
            LAST=last,
            BLOCK=512,
            num_warps=4,
            PLAIN=how[0],
            INDEX=how[1],
        )
        held, spare, width, depth = spare, held, 2 * width, depth + 1
    return held


def _key_dtype(dtype):
    return torch.int64 if dtype in (torch.int64, torch.float64) else torch.int32
