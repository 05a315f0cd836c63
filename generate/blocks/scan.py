"""Scans: each element becomes the combination of all elements up to it in its row.

The kinds are sum, prod, max, min (value and index; the last among equals; NaN wins) and logsumexp. The latter
keeps the largest element and the sum over exponentials relative to it (arXiv:1805.02867).

A program walks along BLOCK_M rows in tiles and carries the combined prefix. A few long rows are cut into
parts: one kernel combines each part, and a second one begins each part with the combination of those before
it.
"""

import torch
import triton
import triton.language as tl
from blocks.combination import folded_softmax, product_of, softmax_of
from blocks.limits import INT32_MAX, PROCESSORS, SMALL_TENSOR
from blocks.offsets import TINY_TENSOR, integer, integer_value, reach, small_tile, strided, walk
from blocks.reduction import dtype_limits, exponential_share
from blocks.row_walks import walk_rows
from blocks.types import compute_types, convert

__all__ = ["scan_along"]

LARGEST_SCAN_OFFSET = INT32_MAX - 16384  # for int32; 16384 leaves room for the lanes beyond the last row and element


@triton.jit
def last_larger_of(a, i, b, j):
    nans = (a != a) & (b != b)
    keep = (a > b) | ((a != a) & (b == b)) | (((a == b) | nans) & (i > j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def last_smaller_of(a, i, b, j):
    nans = (a != a) & (b != b)
    keep = (a < b) | ((a != a) & (b == b)) | (((a == b) | nans) & (i > j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def scan_values(x, i, KIND: tl.constexpr):
    """Return the values to combine, from elements and their positions in the row."""
    if KIND == "sum" or KIND == "prod":
        c = (x,)
    elif KIND == "logsumexp":
        c = exponential_share(x)
    else:
        c = x, i.to(tl.int64)
    return c


@triton.jit
def scan_start(like, KIND: tl.constexpr, LIMITS: tl.constexpr):
    """Return the neutral values for the combination."""
    if KIND == "sum":
        c = (tl.zeros_like(like),)
    elif KIND == "prod":
        c = (tl.full(like.shape, 1, like.dtype),)
    elif KIND == "max":
        c = tl.full(like.shape, LIMITS[0], like.dtype), tl.full(like.shape, -1, tl.int64)
    elif KIND == "min":
        c = tl.full(like.shape, LIMITS[1], like.dtype), tl.full(like.shape, -1, tl.int64)
    else:
        c = tl.full(like.shape, float("-inf"), like.dtype), tl.zeros_like(like)
    return c


@triton.jit
def joined_after(a, b, KIND: tl.constexpr):
    """Combine two value tuples elementwise, b after a."""
    if KIND == "sum":
        c = (a[0] + b[0],)
    elif KIND == "prod":
        c = (a[0] * b[0],)
    elif KIND == "max":
        c = last_larger_of(a[0], a[1], b[0], b[1])
    elif KIND == "min":
        c = last_smaller_of(a[0], a[1], b[0], b[1])
    else:
        c = softmax_of(a[0], a[1], b[0], b[1])
    return c


@triton.jit
def scanned_tile(values, KIND: tl.constexpr):
    """Scan a tuple of values [M, N] along N."""
    if KIND == "sum":
        c = (tl.cumsum(values[0], 1),)
    elif KIND == "prod":
        c = (tl.cumprod(values[0], 1),)
    elif KIND == "max":
        c = tl.associative_scan(values, 1, last_larger_of)
    elif KIND == "min":
        c = tl.associative_scan(values, 1, last_smaller_of)
    else:
        c = tl.associative_scan(values, 1, softmax_of)
    return c


@triton.jit
def come_to(values, KIND: tl.constexpr):
    """Reduce values [M, N] along N."""
    if KIND == "sum":
        c = (tl.sum(values[0], 1),)
    elif KIND == "prod":
        c = (tl.reduce(values[0], 1, product_of),)
    elif KIND == "max":
        c = tl.reduce(values, 1, last_larger_of)
    elif KIND == "min":
        c = tl.reduce(values, 1, last_smaller_of)
    else:
        c = folded_softmax(values[0], values[1])
    return c


@triton.jit
def inside_of(mask, values, none):
    """Return the values if the mask is true, else the neutral values."""
    c = ()
    for k in tl.static_range(len(none)):
        c = c + (tl.where(mask, values[k], none[k]),)
    return c


@triton.jit
def scan_tile(
    x_ptr, cols, along, mask, KIND: tl.constexpr, COMMON: tl.constexpr, LIMITS: tl.constexpr, HOW: tl.constexpr
):
    """Load a tile's values, with neutral values outside; HOW is (OPMATH, PLAIN)."""
    offset = strided(cols, along[0], along[1][0], False, HOW[1])[None, :]
    x = convert(tl.load(x_ptr + offset, mask=mask, other=0), COMMON).to(HOW[0])
    i = tl.broadcast_to(cols[None, :], x.shape)
    return inside_of(mask, scan_values(x, i, KIND), scan_start(x, KIND, LIMITS))


@triton.jit
def part_kernel(
    x_ptr,
    partials,
    m,
    n,
    part,
    across,
    along,
    KIND: tl.constexpr,
    COMMON: tl.constexpr,
    LIMITS: tl.constexpr,
    HOW: tl.constexpr,
    INDEX: tl.constexpr,
    TILE: tl.constexpr,
):
    """Combine part program_id(1) in each row into partials[part, row].

    Args:
        x_ptr: m rows with n elements, read; `across` walks the rows and `along` the elements.
        partials: tuple of combined values, [parts, m] each, written.
        m: number of rows, encoded by `integer`.
        n: elements per row, encoded by `integer`.
        part: elements per part, a multiple of BLOCK_N, encoded by `integer`.
        across: walk from row to row, for x and the results.
        along: walk along a row, for x and the results.
        KIND: "sum", "prod", "max", "min" or "logsumexp".
        COMMON: type to which elements are converted.
        LIMITS: (least, largest) value in the dtype.
        HOW: (OPMATH, the type to compute in; PLAIN, True if integers are encoded by `plain`).
        INDEX: type for offsets: int32 or int64.
        TILE: (BLOCK_M, BLOCK_N), rows and elements of each row per tile.
    """
    m, n, part = integer_value(m, HOW[1]), integer_value(n, HOW[1]), integer_value(part, HOW[1])
    rows = tl.program_id(0).to(INDEX) * TILE[0] + tl.arange(0, TILE[0])
    x_ptr += strided(rows, across[0], across[1][0], False, HOW[1])[:, None]
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    acc = scan_start(tl.zeros([BLOCK_M, BLOCK_N], HOW[0]), KIND, LIMITS)
    for distance in range(TILE[1], part + 1, TILE[1]):  # backward: the next kernel's first tile is then in the cache
        cols = tl.program_id(1).to(INDEX) * part + part - distance + tl.arange(0, TILE[1])
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        acc = joined_after(scan_tile(x_ptr, cols, along, mask, KIND, COMMON, LIMITS, HOW), acc, KIND)
    values = come_to(acc, KIND)
    for k in tl.static_range(len(partials)):
        tl.store(partials[k] + tl.program_id(1).to(tl.int64) * m + rows, values[k], mask=rows < m)


@triton.jit
def scan_kernel(
    x_ptr,
    partials,
    outs,
    m,
    n,
    part,
    across,
    along,
    KIND: tl.constexpr,
    COMMON: tl.constexpr,
    LIMITS: tl.constexpr,
    HOW: tl.constexpr,
    INDEX: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Scan part program_id(1) in BLOCK_M rows into outs.

    Args:
        x_ptr: m rows with n elements, read; `across` walks the rows and `along` the elements.
        partials: tuple of values from `part_kernel`, [parts, m] each, read, or () if there is one part.
        outs: results and, for max and min, indices, written.
        m: number of rows, encoded by `integer`.
        n: elements per row, encoded by `integer`.
        part: elements per part, a multiple of BLOCK_N, encoded by `integer`.
        across: walk from row to row, for x and the results.
        along: walk along a row, for x and the results.
        KIND: "sum", "prod", "max", "min" or "logsumexp".
        COMMON: type to which elements are converted.
        LIMITS: (least, largest) value in the dtype.
        HOW: (OPMATH, the type to compute in; PLAIN, True if integers are encoded by `plain`).
        INDEX: type for offsets: int32 or int64.
        TILE: (BLOCK_M, BLOCK_N), rows and elements of each row per tile.
        CHUNK: parts that are combined at once.
    """
    m, n, part = integer_value(m, HOW[1]), integer_value(n, HOW[1]), integer_value(part, HOW[1])
    rows = tl.program_id(0).to(INDEX) * TILE[0] + tl.arange(0, TILE[0])
    x_ptr += strided(rows, across[0], across[1][0], False, HOW[1])[:, None]
    offset_of_row = strided(rows, across[0], across[1][1], False, HOW[1])[:, None]
    BLOCK_M: tl.constexpr = TILE[0]
    carry = scan_start(tl.zeros([BLOCK_M], HOW[0]), KIND, LIMITS)
    if len(partials) > 0:  # each program combines the earlier parts itself, which saves a launch between the two
        none = scan_start(tl.zeros([BLOCK_M, CHUNK], HOW[0]), KIND, LIMITS)
        for first in range(0, tl.program_id(1), CHUNK):
            k = first + tl.arange(0, CHUNK)
            mask = (rows < m)[:, None] & (k < tl.program_id(1))[None, :]
            values = ()
            for j in tl.static_range(len(partials)):
                at = k.to(tl.int64)[None, :] * m + rows[:, None]
                values = values + (tl.load(partials[j] + at, mask=mask, other=0),)
            carry = joined_after(carry, come_to(inside_of(mask, values, none), KIND), KIND)
    # invariant: carry combines the row's elements before `start`, in all parts
    for start in range(0, part, TILE[1]):
        cols = tl.program_id(1).to(INDEX) * part + start + tl.arange(0, TILE[1])
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        values = scan_tile(x_ptr, cols, along, mask, KIND, COMMON, LIMITS, HOW)
        before = ()
        for k in tl.static_range(len(carry)):
            before = before + (tl.broadcast_to(carry[k][:, None], values[k].shape),)
        results = joined_after(before, scanned_tile(values, KIND), KIND)
        carry = joined_after(carry, come_to(values, KIND), KIND)
        target = offset_of_row + strided(cols, along[0], along[1][1], False, HOW[1])[None, :]
        if KIND == "logsumexp":
            tl.store(outs[0] + target, convert(results[0] + tl.log(results[1]), outs[0].dtype.element_ty), mask=mask)
        else:
            for k in tl.static_range(len(outs)):
                tl.store(outs[k] + target, convert(results[k], outs[k].dtype.element_ty), mask=mask)


def scan_along(kind, x, dim, dtype):
    """Scan x along dim and return a new contiguous tensor with this dtype, to which x is converted.

    For max and min the indices are a second result.
    """
    dtypes = (dtype, torch.int64) if kind in ("max", "min") else (dtype,)
    outs = [torch.empty(x.shape, dtype=d, device=x.device) for d in dtypes]
    if x.numel():
        x, targets = (x, outs) if x.dim() else (x.unsqueeze(0), [out.unsqueeze(0) for out in outs])
        _scan_into(kind, x, dim % x.dim(), targets, dtype)
    return outs[0] if len(outs) == 1 else tuple(outs)


def _scan_into(kind, x, dim, outs, common):
    """Launch two kernels for few rows with many elements, one otherwise: eight programs for each processor."""
    n, m = x.shape[dim], x.numel() // x.shape[dim]
    rest = [d for d in range(x.dim()) if d != dim]
    BLOCK_M, BLOCK_N = _scan_tile(m, n, min([x.stride(d) for d in rest if x.shape[d] > 1], default=1), x.stride(dim))
    parts = max(min(8 * PROCESSORS // triton.cdiv(m, BLOCK_M), n // (2 * BLOCK_N)), 1)
    part = triton.cdiv(triton.cdiv(n, parts), BLOCK_N) * BLOCK_N
    parts = triton.cdiv(n, part)
    PLAIN = m * n < SMALL_TENSOR
    COMMON, OPMATH = compute_types(common)
    LIMITS, HOW, TILE = dtype_limits(common), (OPMATH, PLAIN), (BLOCK_M, BLOCK_N)
    INDEX = tl.int64 if reach(x.shape, [x.stride(), outs[0].stride()]) > LARGEST_SCAN_OFFSET else tl.int32
    steps = walk_rows([x, outs[0]], rest, PLAIN), walk([x, outs[0]], [dim], PLAIN)
    sizes = integer(m, PLAIN), integer(n, PLAIN), integer(part, PLAIN)
    grid = triton.cdiv(m, BLOCK_M), parts
    partials = ()
    if parts > 1:
        partials = tuple([torch.empty((parts, m), dtype=d, device=x.device) for d in _held_dtypes(kind, common)])
        part_kernel[grid](
            x,
            partials,
            *sizes,
            *steps,
            KIND=kind,
            COMMON=COMMON,
            LIMITS=LIMITS,
            HOW=HOW,
            INDEX=INDEX,
            TILE=TILE,
            num_warps=8,
        )
    scan_kernel[grid](
        x,
        partials,
        tuple(outs),
        *sizes,
        *steps,
        KIND=kind,
        COMMON=COMMON,
        LIMITS=LIMITS,
        HOW=HOW,
        INDEX=INDEX,
        TILE=TILE,
        CHUNK=max(2048 // BLOCK_M, 1),
        num_warps=8,
    )


def _held_dtypes(kind, common):
    opmath = torch.float32 if common in (torch.float16, torch.bfloat16) else common
    opmath = opmath if common.is_floating_point or common == torch.int64 else torch.int32
    return (opmath, {"max": torch.int64, "min": torch.int64}.get(kind, opmath))[: 1 if kind in ("sum", "prod") else 2]


def _scan_tile(m, n, stride, scanned_stride):
    """Return BLOCK_M and BLOCK_N, with the longer side along the smaller stride."""
    if m * n < TINY_TENSOR:
        return small_tile(n, 2048)
    if m > 1 and stride < scanned_stride:
        BLOCK_M = min(triton.next_power_of_2(m), 64)
        return BLOCK_M, min(triton.next_power_of_2(n), 4096 // BLOCK_M)
    BLOCK_N = min(triton.next_power_of_2(n), 4096)
    return min(triton.next_power_of_2(m), 4096 // BLOCK_N), BLOCK_N
