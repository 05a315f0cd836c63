"""A stable sort of rows by their keys' digits, the least significant first (Knuth, TAOCP 3, 5.2.5).

For each digit the parts of all rows count it, and then move what they hold: an element's place is how many of its row
have a smaller digit, and how many before it have the same. Elements travel as they are, each with its place in its row.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import integer, integer_value, plain, plain_value, strided
from blocks.order import key_bits, order_key

DIGIT_PARTS = 528  # four programs for each of 132 processors


@triton.jit
def digit_of(x, shift, flip, RAW: tl.constexpr, DESCENDING: tl.constexpr):
    """Four bits of the key of x, or, not RAW, of keys. flip: those that are inverted."""
    key = order_key(x, DESCENDING) if RAW else x
    return ((key >> plain_value(shift)) & 15).to(tl.int32) ^ plain_value(flip)


@triton.jit
def moved_elements(x_ptr, held, base, cols, mask, along, PLAIN: tl.constexpr):
    """Of rows x, or of what was moved before."""
    if len(held) > 0:
        x = tl.load(held[0] + base + cols, mask=mask, other=0)
    else:
        x = tl.load(x_ptr + strided(cols, along[0], along[1][0], False, PLAIN), mask=mask, other=0)
    return x


@triton.jit
def digit_counts(
    x_ptr, held, base, begin, end, shift, flip, along, RAW: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr
):
    """How often each digit is there from `begin` to `end` of a row. HOW: DESCENDING, PLAIN, INDEX."""
    counts = tl.zeros([16], tl.int32)
    for start in range(begin, end, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(HOW[2])
        x = moved_elements(x_ptr, held, base, cols, cols < end, along, HOW[1])
        counts += tl.histogram(digit_of(x, shift, flip, RAW, HOW[0]), 16, cols < end)
    return counts


@triton.jit
def digit_counts_kernel(
    x_ptr,
    held,
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
    """counts: [rows, parts, 16]."""
    n, part, parts = integer_value(n, HOW[1]), integer_value(part, HOW[1]), integer_value(parts, HOW[1])
    row = (tl.program_id(0) // parts).to(HOW[2])
    begin = (tl.program_id(0) % parts).to(HOW[2]) * part
    x_ptr += strided(row, across[0], across[1][0], False, HOW[1])
    end = tl.minimum(begin + part, n)
    counts = digit_counts(x_ptr, held, row * n, begin, end, shift, flip, along, RAW, HOW, BLOCK)
    tl.store(counts_ptr + tl.program_id(0).to(tl.int64) * 16 + tl.arange(0, 16), counts)


@triton.jit
def digit_starts(counts_ptr, row, block, parts, INDEX: tl.constexpr, ROWS: tl.constexpr):
    """Where each digit's elements of a part go: behind smaller digits, and those of the parts before."""
    digits = tl.arange(0, 16)
    total = tl.zeros([16], INDEX)
    before = tl.zeros([16], INDEX)
    for first in range(0, parts, ROWS):
        other = first + tl.arange(0, ROWS)
        place = (row * parts + other).to(tl.int64)[:, None] * 16 + digits[None, :]
        count = tl.load(counts_ptr + place, mask=(other < parts)[:, None], other=0).to(INDEX)
        total += tl.sum(count, 0)
        before += tl.sum(tl.where((other < block)[:, None], count, 0), 0)
    return before + tl.cumsum(total, 0) - total


@triton.jit
def digit_ranks(digit, starts):
    """The place of each element of [M, 64], in row-major order, and the starts for what comes behind these.

    Eight counters of eight bits are one integer.
    """
    low = digit < 8
    shift = (digit & 7) * 8
    unit = tl.full(digit.shape, 1, tl.int64) << shift
    lower, upper = tl.where(low, unit, 0), tl.where(low, 0, unit)
    seen = tl.where(low, tl.cumsum(lower, 1), tl.cumsum(upper, 1))
    d = tl.arange(0, 16)[:, None]
    counts = tl.where(d < 8, tl.sum(lower, 1)[None, :], tl.sum(upper, 1)[None, :])
    counts = ((counts >> ((d & 7) * 8)) & 255).to(starts.dtype)
    before = tl.cumsum(counts, 1) - counts + starts[:, None]
    rank = ((seen >> shift) & 255).to(starts.dtype) - 1
    return tl.gather(tl.trans(before), digit, 1) + rank, starts + tl.sum(counts, 1)


@triton.jit
def digit_places_kernel(
    x_ptr,
    held,
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
    HOW: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Moves elements and places to outs; LAST: the first `kept` elements and indices ("values"), or keys and places.

    counts None: a program has a whole row and counts its digits itself.
    """
    n, part, parts = integer_value(n, HOW[1]), integer_value(part, HOW[1]), integer_value(parts, HOW[1])
    row = (tl.program_id(0) // parts).to(HOW[2])
    block = tl.program_id(0) % parts
    x_ptr += strided(row, across[0], across[1][0], False, HOW[1])
    base = row * n
    begin = block.to(HOW[2]) * part
    end = tl.minimum(begin + part, n)
    if counts_ptr is None:
        counts = digit_counts(x_ptr, held, base, begin, end, shift, flip, along, RAW, HOW, 2 * BLOCK).to(HOW[2])
        starts = tl.cumsum(counts, 0) - counts
    else:
        starts = digit_starts(counts_ptr, row, block, parts, HOW[2], ROWS)
    lanes = tl.arange(0, BLOCK // 64).to(HOW[2])[:, None] * 64 + tl.arange(0, 64)[None, :]
    for start in range(begin, end, BLOCK):
        cols = start + lanes
        mask = cols < end
        x = moved_elements(x_ptr, held, base, cols, mask, along, HOW[1])
        item = cols
        if len(held) > 0:
            item = tl.load(held[1] + base + cols, mask=mask, other=0)
        to, starts = digit_ranks(digit_of(x, shift, flip, RAW, HOW[0]), starts)
        if LAST == "values":
            mask = mask & (to < integer_value(kept, HOW[1]))
            to = strided(row, across[0], across[1][1], False, HOW[1]) + to * integer_value(step, HOW[1])
            if not RAW:
                x = tl.load(x_ptr + strided(item, along[0], along[1][0], False, HOW[1]), mask=mask)
            tl.store(outs[0] + to, x, mask=mask)
            tl.store(outs[1] + to, item.to(tl.int64), mask=mask)
        else:
            if LAST == "keys":
                x = order_key(x, HOW[0])
            tl.store(outs[0] + base + to, x, mask=mask)
            tl.store(outs[1] + base + to, item, mask=mask)


def sorted_by_digits(x, held, outs, sizes, steps, dtypes, HOW):
    """The first elements of m rows of n, `kept`, and their indices in outs; outs None: sorted keys and places.

    held: keys and places to be sorted instead of the elements, or (). dtypes: of keys and places.
    """
    m, n, kept = sizes
    PLAIN, device = HOW[1], x.device
    RAW, BLOCK = not held, 1024
    part = triton.cdiv(triton.cdiv(n, max(min(DIGIT_PARTS // m, n // 2048), 1)), BLOCK) * BLOCK
    parts = triton.cdiv(n, part)
    counts = torch.empty((m, parts, 16), dtype=torch.int32, device=device) if parts > 1 else None
    carried = (x.dtype if RAW else dtypes[0]), dtypes[1]
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
                x, held, counts, *lengths, *digit, *steps[:2], BLOCK=4096, num_warps=8, RAW=RAW, HOW=HOW
            )
        digit_places_kernel[(m * parts,)](
            x,
            held,
            counts,
            to,
            *lengths,
            integer(kept, PLAIN),
            *digit,
            *steps,
            LAST=("keys" if outs is None else "values") if last else "",
            BLOCK=BLOCK,
            ROWS=128,
            num_warps=4,
            RAW=RAW,
            HOW=HOW,
        )
        held = to
    return results
