"""Stable radix sort of rows, least significant digit first (Knuth, TAOCP 3, 5.2.5).

For each digit of four bits, the parts of all rows count it and then move their elements. An element's place is
how many elements in its row have a smaller digit, plus how many earlier ones have the same digit.
Elements travel unchanged together with their place in the row. They share one 64-bit integer if both fit,
because scattered writes dominate the time of a pass.
"""

import torch
import triton
import triton.language as tl
from blocks.limits import PROCESSORS
from blocks.offsets import integer, integer_value, plain, plain_value, strided
from blocks.order import key_bits, order_key

DIGIT_PARTS = 6 * PROCESSORS  # program instances that walk over the keys
LEAST_DIGIT_PART = 2048  # least elements per part, because each part adds 16 counts to the prefix sum
FEW_PARTS = 16  # parts per row up to which each part adds the counts itself, without a prefix kernel
DIGIT_LANES = 128  # lanes per tile, with two elements each


@triton.jit
def digit_of(x, shift, flip, RAW: tl.constexpr, DESCENDING: tl.constexpr):
    """Return four bits of the key of x; without RAW, x already is a key.

    `flip` inverts bits, which orders the signed top digit.
    """
    key = order_key(x, DESCENDING) if RAW else x
    return ((key >> plain_value(shift)) & 15).to(tl.int32) ^ plain_value(flip)


@triton.jit
def element_with_place(x, item):
    """Return an int64 with the bits of x (at most 32) above its place."""
    if x.dtype.is_floating() and x.dtype.primitive_bitwidth == 16:
        x = x.to(tl.int16, bitcast=True)
    elif x.dtype.is_floating():
        x = x.to(tl.int32, bitcast=True)
    return (x.to(tl.int64) << 32) | item.to(tl.int64)


@triton.jit
def element_and_place(both, TYPE: tl.constexpr):
    """Return the element, with dtype TYPE, and the place from an integer made by `element_with_place`."""
    x = (both >> 32).to(tl.int32)
    if TYPE.is_floating() and TYPE.primitive_bitwidth == 16:
        x = x.to(tl.int16).to(TYPE, bitcast=True)
    elif TYPE.is_floating():
        x = x.to(TYPE, bitcast=True)
    else:
        x = x.to(TYPE)
    return x, both.to(tl.int32)


@triton.jit
def moved_elements(x_ptr, previous, base, cols, mask, along, RAW: tl.constexpr, PLAIN: tl.constexpr):
    """Load the elements of a row and their places, from x or from the result of the previous pass.

    `previous` is () for x, (packed,) or (elements, places).
    """
    if len(previous) == 0:
        x = tl.load(x_ptr + strided(cols, along[0], along[1][0], False, PLAIN), mask=mask, other=0)
        item = cols
    elif len(previous) == 1:
        both = tl.load(previous[0] + base + cols, mask=mask, other=0)
        x, item = element_and_place(both, x_ptr.dtype.element_ty if RAW else tl.int32)
    else:
        x = tl.load(previous[0] + base + cols, mask=mask, other=0)
        item = tl.load(previous[1] + base + cols, mask=mask, other=0)
    return x, item


@triton.jit
def digit_counts(
    x_ptr, previous, base, begin, end, shift, flip, along, RAW: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr
):
    """Return the number of occurrences of each digit between `begin` and `end` in a row.

    HOW is (DESCENDING, PLAIN, INDEX): sort order, encoding of integers, and index type.
    """
    counts = tl.zeros([16], tl.int32)
    for start in range(begin, end, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(HOW[2])
        x, item = moved_elements(x_ptr, previous, base, cols, cols < end, along, RAW, HOW[1])
        counts += tl.histogram(digit_of(x, shift, flip, RAW, HOW[0]), 16, cols < end)
    return counts


@triton.jit
def digit_counts_kernel(
    x_ptr,
    previous,
    counts_ptr,
    n,
    part,
    parts,
    shift,
    flip,
    across,
    along,
    RAW: tl.constexpr,
    HOW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count the digits in one part of a row.

    Args:
        x_ptr: Tensor with the rows, read (see `moved_elements`).
        previous: Result of the previous pass, read (see `moved_elements`).
        counts_ptr: [rows, 16, parts], written.
        n: Row length, encoded by `integer`.
        part: Elements per part, encoded by `integer`.
        parts: Parts per row, encoded by `integer`.
        shift: First bit of the digit, encoded by `plain` (see `digit_of`).
        flip: Bits of the digit to invert, encoded by `plain` (see `digit_of`).
        across: `walk` over the rows.
        along: `walk` along a row.
        RAW: Sort the elements of x; otherwise `previous` holds keys.
        HOW: (DESCENDING, PLAIN, INDEX), as in `digit_counts`.
        BLOCK: Elements per step.
    """
    n, part, parts = integer_value(n, HOW[1]), integer_value(part, HOW[1]), integer_value(parts, HOW[1])
    row = (tl.program_id(0) // parts).to(HOW[2])
    block = tl.program_id(0) % parts
    begin = block.to(HOW[2]) * part
    x_ptr += strided(row, across[0], across[1][0], False, HOW[1])
    end = tl.minimum(begin + part, n)
    counts = digit_counts(x_ptr, previous, row * n, begin, end, shift, flip, along, RAW, HOW, BLOCK)
    tl.store(counts_ptr + (row * 16 + tl.arange(0, 16)) * parts + block, counts.to(HOW[2]))


@triton.jit
def digit_starts_kernel(counts_ptr, length, TILE: tl.constexpr):
    """Replace each row's counts by their exclusive prefix sum, in place.

    Args:
        counts_ptr: [rows, length], read and written.
        length: Counts per row.
        TILE: Counts per step.
    """
    counts_ptr += tl.program_id(0).to(tl.int64) * length
    before = tl.zeros([], counts_ptr.dtype.element_ty)
    for start in range(0, length, TILE):
        position = start + tl.arange(0, TILE)
        count = tl.load(counts_ptr + position, mask=position < length, other=0)
        tl.store(counts_ptr + position, before + tl.cumsum(count, 0) - count, mask=position < length)
        before += tl.sum(count, 0)


@triton.jit
def digit_starts(counts_ptr, block, parts, FEW: tl.constexpr, ROWS: tl.constexpr):
    """Return the first place of each digit in a part: after smaller digits and after the parts before.

    `counts_ptr` is [16, parts] for a row. With FEW it holds plain counts from at most ROWS parts, else prefix
    sums.
    """
    digits = tl.arange(0, 16)
    if FEW:
        other = tl.arange(0, ROWS)
        mask = (other < parts)[None, :]
        count = tl.load(counts_ptr + digits[:, None] * parts + other[None, :], mask=mask, other=0)
        total = tl.sum(count, 1)
        starts = tl.cumsum(total, 0) - total + tl.sum(tl.where((other < block)[None, :], count, 0), 1)
    else:
        starts = tl.load(counts_ptr + digits * parts + block)
    return starts


@triton.jit
def digit_ranks(first, second, starts):
    """Return the places of two consecutive elements per lane (up to 128 lanes), and the starts for the next tile.

    One integer holds eight counters of eight bits each, because at most 255 elements precede another one in a
    tile. The tile's total may be 256, so that the last lane's own count is added after unpacking.
    """
    shift, shift_2 = (first & 7) * 8, (second & 7) * 8
    one = tl.full(first.shape, 1, tl.int64)
    # two integers, for digits 0 to 7 and 8 to 15; one cumsum of each counts eight digits at once
    unit, unit_2 = one << shift, one << shift_2
    lower, upper = tl.where(first < 8, unit, 0), tl.where(first < 8, 0, unit)
    lower_2 = lower + tl.where(second < 8, unit_2, 0)
    upper_2 = upper + tl.where(second < 8, 0, unit_2)
    below, above = tl.cumsum(lower_2, 0) - lower_2, tl.cumsum(upper_2, 0) - upper_2
    before = tl.where(first < 8, below, above)
    before_2 = tl.where(second < 8, below + lower, above + upper)
    to = tl.gather(starts, first, 0) + ((before >> shift) & 255).to(starts.dtype)
    to_2 = tl.gather(starts, second, 0) + ((before_2 >> shift_2) & 255).to(starts.dtype)
    d = tl.arange(0, 16)
    last = tl.full([16], first.shape[0] - 1, tl.int32)
    behind = tl.where(d < 8, tl.gather(below, last, 0), tl.gather(above, last, 0))
    last_counts = tl.where(d < 8, tl.gather(lower_2, last, 0), tl.gather(upper_2, last, 0))
    more = ((behind >> (d & 7) * 8) & 255) + ((last_counts >> (d & 7) * 8) & 255)
    return to, to_2, starts + more.to(starts.dtype)


@triton.jit
def digit_places_kernel(
    x_ptr,
    previous,
    counts_ptr,
    outs,
    n,
    part,
    parts,
    kept,
    shift,
    flip,
    across,
    along,
    step,
    RAW: tl.constexpr,
    LAST: tl.constexpr,
    FEW: tl.constexpr,
    HOW: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Move elements and places to `outs` in the order of one digit.

    Args:
        x_ptr: Tensor with the rows, read (see `moved_elements`).
        previous: Result of the previous pass, read (see `moved_elements`).
        counts_ptr: [rows, 16, parts] from the kernels before, read; None if a program instance has a whole row
            and counts its digits itself.
        outs: Pointer tuple, written.
        n: Row length, encoded by `integer`.
        part: Elements per part, encoded by `integer`.
        parts: Parts per row, encoded by `integer`.
        kept: Elements of a row to write with LAST "values", encoded by `integer`.
        shift: First bit of the digit, encoded by `plain` (see `digit_of`).
        flip: Bits of the digit to invert, encoded by `plain` (see `digit_of`).
        across: `walk` over the rows of x and of the results.
        along: `walk` along a row.
        step: Stride of the results along a row, encoded by `integer`.
        RAW: Sort the elements of x; otherwise `previous` holds keys.
        LAST: "values" writes elements and int64 indices, "keys" writes keys and places, "" goes on to another
            pass.
        FEW: At most ROWS parts per row (see `digit_starts`).
        HOW: (DESCENDING, PLAIN, INDEX), as in `digit_counts`.
        LANES: Lanes per tile, with two elements each.
        ROWS: Most parts per row with FEW.
    """
    n, part, parts = integer_value(n, HOW[1]), integer_value(part, HOW[1]), integer_value(parts, HOW[1])
    row = (tl.program_id(0) // parts).to(HOW[2])
    block = tl.program_id(0) % parts
    x_ptr += strided(row, across[0], across[1][0], False, HOW[1])
    base = row * n
    begin = block.to(HOW[2]) * part
    end = tl.minimum(begin + part, n)
    if counts_ptr is None:
        counts = digit_counts(x_ptr, previous, base, begin, end, shift, flip, along, RAW, HOW, 2048).to(HOW[2])
        starts = tl.cumsum(counts, 0) - counts
    else:
        starts = digit_starts(counts_ptr + row * 16 * parts, block, parts, FEW, ROWS)
    # In order, because `starts` carries the counts of earlier tiles: this keeps the sort stable.
    for start in range(begin, end, 2 * LANES):
        cols = start + tl.arange(0, LANES).to(HOW[2])[:, None] * 2 + tl.arange(0, 2)[None, :]
        x, item = moved_elements(x_ptr, previous, base, cols, cols < end, along, RAW, HOW[1])
        first, second = tl.split(digit_of(x, shift, flip, RAW, HOW[0]))
        to, to_2, starts = digit_ranks(first, second, starts)
        to, mask = tl.join(to, to_2), cols < end
        if LAST == "values":
            mask = mask & (to < integer_value(kept, HOW[1]))
            to = strided(row, across[0], across[1][1], False, HOW[1]) + to * integer_value(step, HOW[1])
            if not RAW:
                x = tl.load(x_ptr + strided(item, along[0], along[1][0], False, HOW[1]), mask=mask)
            tl.store(outs[0] + to, x, mask=mask)
            tl.store(outs[1] + to, item.to(tl.int64), mask=mask)
        elif LAST == "keys":
            tl.store(outs[0] + base + to, order_key(x, HOW[0]) if RAW else x, mask=mask)
            tl.store(outs[1] + base + to, item, mask=mask)
        elif len(outs) == 1:
            tl.store(outs[0] + base + to, element_with_place(x, item), mask=mask)
        else:
            tl.store(outs[0] + base + to, x, mask=mask)
            tl.store(outs[1] + base + to, item, mask=mask)


def sorted_by_digits(x, previous, outs, sizes, steps, dtypes, HOW):
    """Sort m rows of n elements and return the results.

    Args:
        x: Tensor with the rows.
        previous: Keys and places to sort instead of the elements, or ().
        outs: Tensors for the first `kept` elements per row and their indices, or None to return keys and
            places.
        sizes: (m, n, kept).
        steps: `walk` across the rows, `walk` along a row, and the results' stride along a row.
        dtypes: Dtypes of keys and places.
        HOW: (DESCENDING, PLAIN, INDEX) as in `digit_counts`.

    Returns:
        `outs`, or new [m, n] tensors with sorted keys and places.
    """
    m, n, kept = sizes
    PLAIN, device = HOW[1], x.device
    RAW = not previous
    # a multiple of 1,024, the block of `digit_counts_kernel`
    part = triton.cdiv(triton.cdiv(n, max(min(DIGIT_PARTS // m, n // LEAST_DIGIT_PART), 1)), 1024) * 1024
    parts = triton.cdiv(n, part)
    FEW = parts <= FEW_PARTS
    counts = torch.empty((m, 16, parts), dtype=dtypes[1], device=device) if parts > 1 else None
    carried = [x.dtype if RAW else dtypes[0], dtypes[1]]
    if dtypes == (torch.int32, torch.int32):
        carried = [torch.int64]
    first, bits, signed = key_bits(x.dtype)
    shifts = range(first // 4 * 4, bits, 4)
    spare = [tuple([torch.empty((m, n), dtype=d, device=device) for d in carried]) for _ in shifts[1:3]]
    results = outs if outs is not None else [torch.empty((m, n), dtype=d, device=device) for d in dtypes]
    lengths = [integer(size, PLAIN) for size in (n, part, parts)]
    for shift in shifts:
        last = shift == shifts[-1]
        digit = plain(shift), plain(8 if last and signed else 0)
        to = tuple(results) if last else spare[shift // 4 % 2]
        if counts is not None:
            digit_counts_kernel[(m * parts,)](
                x, previous, counts, *lengths, *digit, *steps[:2], BLOCK=1024, num_warps=4, RAW=RAW, HOW=HOW
            )
            if not FEW:
                digit_starts_kernel[(m,)](counts, 16 * parts, TILE=8192, num_warps=16)
        digit_places_kernel[(m * parts,)](
            x,
            previous,
            counts,
            to,
            *lengths,
            integer(kept, PLAIN),
            *digit,
            *steps,
            LAST=("keys" if outs is None else "values") if last else "",
            FEW=FEW,
            LANES=DIGIT_LANES,
            ROWS=FEW_PARTS,
            num_warps=4,
            RAW=RAW,
            HOW=HOW,
        )
        previous = to  # two spare buffers suffice, because a pass only reads the one before
    return results
