"""Small windows in tiles over the result's two innermost dimensions.

An axis function (`blocks.windows`) runs once per row or column in a tile, and once per tile for outer
dimensions. So an element costs one addition and one load per tap.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.offsets import integer_values, integers, plain, plain_value
from blocks.types import convert, number_value

__all__ = [
    "axis_tap",
    "axis_taps",
    "fits_tiles",
    "tile_arguments",
    "tile_grid",
    "tile_kernel",
    "tile_largest_kernel",
    "tile_place",
    "unrolled",
]

UNROLLED_TAPS = 8  # most taps that are unrolled, because each is a copy of the loop's body

# Taps from which on a warp shares a window: with fewer, the lanes for its taps would not be full (`windows`).
SHARED_TAPS = 32


@triton.jit
def tile_place(
    sizes,
    rows,
    LAST: tl.constexpr,
    FLAT: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Return a tile's coordinates (batch, channel, ...), row mask, column mask and element offsets.

    Each coordinate is one value, a column or a row. If FLAT, rows run through all dimensions but the
    innermost.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    AXES: tl.constexpr = len(sizes) - 2
    inner = sizes[1] if LAST else sizes[AXES + 1]
    second = sizes[AXES + 1] if LAST else sizes[AXES]
    across = tl.cdiv(inner, BLOCK_N)
    tile = tl.full([1, 1], 0, INDEX) + tl.program_id(0).to(INDEX)
    column = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    tile = tile // across
    if FLAT:
        flat_row = tile * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
        row, outer = flat_row % second, flat_row // second
        inside = flat_row < rows
    else:
        down = tl.cdiv(second, BLOCK_M)
        row = tile % down * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
        outer = tile // down
        flat_row = outer * second + row
        inside = row < second
    offsets = flat_row * inner + column
    position = (row,) if LAST else (column,) if AXES == 1 else (row, column)
    for k in tl.static_range(AXES - len(position) + 1, 1, -1):
        position = (outer % sizes[k],) + position
        outer = outer // sizes[k]
    if LAST:
        channel = column
    elif AXES == 1:
        channel = row
    else:
        channel = outer % sizes[1]
        outer = outer // sizes[1]
    return (outer, channel) + position, inside, column < inner, offsets


@triton.jit
def axis_tap(AXIS: tl.constexpr, K: tl.constexpr, position, t, strides, numbers, FLOAT: tl.constexpr):
    """Return (offset, weight or size, True if the tap exists, coordinate) for tap t along axis K.

    A negative K stands for a missing axis, with one tap that changes nothing.
    """
    t = position[0] * 0 + t
    if K >= 0:
        floats = ()
        for j in tl.static_range(len(numbers[K][1])):
            floats = floats + (number_value(numbers[K][1][j], FLOAT),)
        at, by, exists = AXIS(position[K + 2], t, integer_values(numbers[K][0], True), floats)
        tap = at * strides[K + 2], by, exists, at
    else:
        tap = t * 0, 1, t == 0, t * 0
    return tap


@triton.jit
def axis_taps(
    AXIS: tl.constexpr, K: tl.constexpr, MOST: tl.constexpr, position, inside, strides, numbers, FLOAT: tl.constexpr
):
    """Return all taps along an axis, as tuples from `axis_tap`."""
    results = ()
    for t in tl.static_range(MOST):
        offset, by, exists, at = axis_tap(AXIS, K, position, t, strides, numbers, FLOAT)
        results = results + ((offset, by, exists & inside, at),)
    return results


@triton.jit
def pair_of(by, exists, REAL: tl.constexpr, ACC: tl.constexpr):
    """Return the (weight, flag) pair for mode "spread"; a missing axis (not REAL) has a false flag."""
    return (by[0].to(ACC), by[1]) if REAL else (tl.cast(by, ACC), exists & (exists != exists))


@triton.jit
def add_row(
    acc, x_ptr, chosen_ptr, target, first, second, taps, chosen_strides, AXES: tl.constexpr, MODE: tl.constexpr
):
    """Add to acc all taps along the last axis, at one tap along each other axis.

    `chosen_ptr` is None, or a tensor with an index per input element; the element then counts only for that
    result index.
    """
    ACC: tl.constexpr = acc.dtype
    offset, exists = first[0] + second[0], first[2] & second[2]
    if MODE == "weigh" or MODE == "share":
        weight = tl.cast(first[1], ACC) * tl.cast(second[1], ACC)
    if MODE == "spread":
        high, high_lost = pair_of(first[1], first[2], AXES > 2, ACC)
        low, low_lost = pair_of(second[1], second[2], AXES > 1, ACC)
        weight, lost = high * low, high_lost | low_lost
    if chosen_ptr is not None:
        where = first[3] * chosen_strides[AXES - 1] + second[3] * chosen_strides[AXES]
    for k in tl.static_range(len(taps)):
        valid = exists & taps[k][2]
        if chosen_ptr is not None:
            chosen = tl.load(chosen_ptr + (where + taps[k][3] * chosen_strides[AXES + 1]), mask=valid, other=-1)
            valid &= chosen == target
        x = tl.load(x_ptr + (offset + taps[k][0]), mask=valid, other=0).to(ACC)
        if MODE == "weigh":
            x *= tl.where(exists, weight, 0) * tl.where(taps[k][2], tl.cast(taps[k][1], ACC), 0)
        elif MODE == "spread":
            product = weight * taps[k][1][0].to(ACC)
            x = tl.where(valid, x * product + tl.where(lost | taps[k][1][1], x * 0, 0), 0)
        elif MODE == "share":
            size = weight * tl.cast(taps[k][1], ACC) + tl.zeros_like(x)
            x = x // size if ACC.is_int() else divide(x, size)
        acc += x
    return acc


@triton.jit
def tile_kernel(
    x_ptr,
    chosen_ptr,
    out_ptr,
    rows,
    sizes,
    strides,
    chosen_strides,
    most,
    numbers,
    AXIS: tl.constexpr,
    MODE: tl.constexpr,
    SECOND: tl.constexpr,
    TAPS: tl.constexpr,
    LAST: tl.constexpr,
    FLAT: tl.constexpr,
    FLOAT: tl.constexpr,
    ACC: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute one tile; see `windows` for the modes.

    Args:
        x_ptr: [batch, channel, ...], read with `strides`.
        chosen_ptr: index in the result's plane per input element, read with `chosen_strides`, or None.
        out_ptr: result with these sizes, written densely.
        rows: result rows in all dimensions but the innermost, for FLAT tiles, encoded by `plain`.
        sizes: result shape, encoded by `integers`.
        strides: strides of x, encoded by `integers`.
        chosen_strides: strides for chosen_ptr, encoded by `integers`, or ().
        most: taps along the three axes, encoded by `integers`; 1 for a missing axis.
        numbers: (integers, floats) per axis for the axis function, encoded.
        AXIS: axis function.
        MODE: as in `windows`.
        SECOND: taps along the axis before the last, unrolled, or 0 to count these at run time.
        TAPS: taps along the last axis, unrolled.
        LAST: channels are innermost.
        FLAT: rows run through all dimensions but the innermost.
        FLOAT: type of the axis function's floats.
        ACC: type to accumulate in.
        WIDE: offsets need int64.
        BLOCK_M: rows per tile.
        BLOCK_N: elements of each row per tile.
    """
    AXES: tl.constexpr = len(sizes) - 2
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    most = integer_values(most, True)
    tile_coordinates, inside, across, offset = tile_place(sizes, plain_value(rows), LAST, FLAT, WIDE, BLOCK_M, BLOCK_N)
    x_ptr += tile_coordinates[0] * strides[0] + tile_coordinates[1] * strides[1]
    # the last axis' taps are the same at all taps along the other axes, so they stay in registers
    taps = axis_taps(AXIS, AXES - 1, TAPS, tile_coordinates, across, strides, numbers, FLOAT)
    plane = tile_coordinates[2]
    if chosen_ptr is not None:
        chosen_strides = integer_values(chosen_strides, True)
        chosen_ptr += tile_coordinates[0] * chosen_strides[0] + tile_coordinates[1] * chosen_strides[1]
        for k in tl.static_range(1, AXES):
            plane = plane * sizes[k + 2] + tile_coordinates[k + 2]
    if MODE == "copy":
        first = axis_tap(AXIS, AXES - 3, tile_coordinates, 0, strides, numbers, FLOAT)
        second = axis_tap(AXIS, AXES - 2, tile_coordinates, 0, strides, numbers, FLOAT)
        exists = first[2] & second[2] & inside & taps[0][2]
        acc = tl.load(x_ptr + (first[0] + second[0] + taps[0][0]), mask=exists, other=0)
    else:
        acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
        seconds = axis_taps(AXIS, AXES - 2, SECOND, tile_coordinates, inside, strides, numbers, FLOAT)
        for t in range(most[0]):
            first = axis_tap(AXIS, AXES - 3, tile_coordinates, t, strides, numbers, FLOAT)
            for k in tl.static_range(SECOND):
                acc = add_row(acc, x_ptr, chosen_ptr, plane, first, seconds[k], taps, chosen_strides, AXES, MODE)
            if SECOND == 0:
                for u in range(most[1]):
                    second = axis_tap(AXIS, AXES - 2, tile_coordinates, u, strides, numbers, FLOAT)
                    second = (second[0], second[1], second[2] & inside, second[3])
                    acc = add_row(acc, x_ptr, chosen_ptr, plane, first, second, taps, chosen_strides, AXES, MODE)
        if MODE == "mean":  # the size does not depend on the tap
            size = axis_tap(AXIS, AXES - 3, tile_coordinates, 0, strides, numbers, FLOAT)[1]
            size = size * axis_tap(AXIS, AXES - 2, tile_coordinates, 0, strides, numbers, FLOAT)[1] * taps[0][1]
            size = tl.cast(size, ACC) + tl.zeros_like(acc)
            acc = acc // size if ACC.is_int() else divide(acc, size)
    tl.store(out_ptr + offset, convert(acc, out_ptr.dtype.element_ty), mask=inside & across)


@triton.jit
def tile_largest_kernel(
    x_ptr,
    out_ptr,
    index_ptr,
    rows,
    sizes,
    strides,
    most,
    numbers,
    extents,
    AXIS: tl.constexpr,
    LEAST: tl.constexpr,
    TAPS: tl.constexpr,
    LAST: tl.constexpr,
    FLAT: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store each window's largest element and its index in the input plane, which has these extents.

    Taps come in index order: the first among equals wins, and the last among NaNs.

    Args:
        x_ptr: [batch, channel, ...], read with `strides`.
        out_ptr: largest elements with these sizes, written densely.
        index_ptr: their indices, int64, written densely.
        rows: result rows in all dimensions but the innermost, for FLAT tiles, encoded by `plain`.
        sizes: result shape, encoded by `integers`.
        strides: strides of x, encoded by `integers`.
        most: taps along the three axes, encoded by `integers`; 1 for a missing axis.
        numbers: (integers, floats) per axis for the axis function, encoded.
        extents: sizes of the input plane, encoded by `integers`.
        AXIS: axis function.
        LEAST: least value in the dtype.
        TAPS: taps along the last axis, unrolled.
        LAST: channels are innermost.
        FLAT: rows run through all dimensions but the innermost.
        WIDE: offsets need int64.
        BLOCK_M: rows per tile.
        BLOCK_N: elements of each row per tile.
    """
    AXES: tl.constexpr = len(sizes) - 2
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    most, extents = integer_values(most, True), integer_values(extents, True)
    tile_coordinates, inside, across, target = tile_place(sizes, plain_value(rows), LAST, FLAT, WIDE, BLOCK_M, BLOCK_N)
    x_ptr += tile_coordinates[0] * strides[0] + tile_coordinates[1] * strides[1]
    taps = axis_taps(AXIS, AXES - 1, TAPS, tile_coordinates, across, strides, numbers, tl.float32)
    best = tl.full([BLOCK_M, BLOCK_N], LEAST, x_ptr.dtype.element_ty)
    index = tl.full([BLOCK_M, BLOCK_N], -1, target.dtype)
    for t in range(most[0]):
        first = axis_tap(AXIS, AXES - 3, tile_coordinates, t, strides, numbers, tl.float32)
        for u in range(most[1]):
            second = axis_tap(AXIS, AXES - 2, tile_coordinates, u, strides, numbers, tl.float32)
            offset, exists = first[0] + second[0], first[2] & second[2] & inside
            before = (first[3] * extents[AXES - 2] + second[3]) * extents[AXES - 1]
            for k in tl.static_range(TAPS):
                valid = exists & taps[k][2]
                x = tl.load(x_ptr + (offset + taps[k][0]), mask=valid, other=LEAST)
                # the first tap wins even if it is LEAST, so each result has an index
                better = valid & ((x > best) | (x != x) | (index < 0))
                best = tl.where(better, x, best)
                index = tl.where(better, before + taps[k][3], index)
    mask = inside & across
    tl.store(out_ptr + target, best, mask=mask)
    tl.store(index_ptr + target, index.to(tl.int64), mask=mask)


def fits_tiles(most, long):
    """Return True if taps are few along the last axis and, if `long`, few in total."""
    total = 1
    for taps in most:
        total *= taps
    return most[-1] <= UNROLLED_TAPS and (not long or total < SHARED_TAPS)


def tile_grid(out, last):
    """Return (grid, encoded rows, keyword arguments) for a launch over `out`.

    `last` means that channels are innermost.
    """
    inner, second = (out.shape[1], out.shape[-1]) if last else (out.shape[-1], out.shape[-2])
    # the width that pads least, and the largest among equals
    _, width = max([(-triton.cdiv(inner, n) * n, n) for n in (32, 64, 128)])
    BLOCK_N = width if inner > 32 else triton.next_power_of_2(inner)
    BLOCK_M = min(triton.next_power_of_2(second), 1024 // BLOCK_N)
    # a small plane would leave most of a tile idle, so a tile's rows then run through several planes
    rows, flat = out.numel() // inner, BLOCK_M * BLOCK_N < 256
    BLOCK_M = 1024 // BLOCK_N if flat else BLOCK_M
    tiles = triton.cdiv(rows, BLOCK_M) if flat else rows // second * triton.cdiv(second, BLOCK_M)
    keywords = {"LAST": last, "FLAT": flat, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    keywords |= {"num_warps": 4 if BLOCK_M * BLOCK_N > 512 else 2}
    return (tiles * triton.cdiv(inner, BLOCK_N),), plain(rows), keywords


def tile_arguments(out, last, most, wide):
    """Return (grid, rows, taps, keyword arguments) for a launch over `out` with these taps.

    `last` means that channels are innermost, and `wide` that offsets need int64.
    """
    grid, rows, keywords = tile_grid(out, last)
    taps = (1,) * (3 - len(most)) + tuple(most)
    return grid, rows, integers(taps, True), keywords | {"TAPS": taps[2], "WIDE": wide}


def unrolled(most):
    """Return the taps to unroll along the axis before the last, or 0 if they are too many with the last one's."""
    second, last = (1, *most)[-2:]
    return second if second * last <= UNROLLED_TAPS else 0
