"""A stable sort of rows by their keys' digits, the least significant first (Knuth, TAOCP 3, 5.2.5).

For each digit the parts of all rows count it, and then move what they hold: an element's place is how many of its row
have a smaller digit, and how many before it have the same. Elements travel as they are, each with its place in its row:
in one integer of 64 bits where that holds both, since what a pass takes is writes that lie apart.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import integer, integer_value, plain, plain_value, strided
from blocks.order import key_bits, order_key

DIGIT_PARTS = 792  # six programs for each of 132 processors
FEW_PARTS = 16  # of a row: each looks itself at what all have
DIGIT_LANES = 128  # of a tile, with two elements each


@triton.jit
def digit_of(x, shift, flip, RAW: tl.constexpr, DESCENDING: tl.constexpr):
    """Four bits of the key of x, or, not RAW, of keys. flip: those that are inverted."""
    key = order_key(x, DESCENDING) if RAW else x
    return ((key >> plain_value(shift)) & 15).to(tl.int32) ^ plain_value(flip)


@triton.jit
def element_with_place(x, item):
    """An integer: the bits of x, of which there are 32 at most, above its place."""
    if x.dtype.is_floating() and x.dtype.primitive_bitwidth == 16:
        x = x.to(tl.int16, bitcast=True)
    elif x.dtype.is_floating():
        x = x.to(tl.int32, bitcast=True)
    return (x.to(tl.int64) << 32) | item.to(tl.int64)


@triton.jit
def element_and_place(both, TYPE: tl.constexpr):
    """The element, of this dtype, and the place of which `element_with_place` made an integer."""
    x = (both >> 32).to(tl.int32)
    if TYPE.is_floating() and TYPE.primitive_bitwidth == 16:
        x = x.to(tl.int16).to(TYPE, bitcast=True)
    elif TYPE.is_floating():
        x = x.to(TYPE, bitcast=True)
    else:
        x = x.to(TYPE)
    return x, both.to(tl.int32)


@triton.jit
def moved_elements(x_ptr, held, base, cols, mask, along, RAW: tl.constexpr, PLAIN: tl.constexpr):
    """Of rows x, or of what was moved before; and their places."""
    if len(held) == 0:
        x = tl.load(x_ptr + strided(cols, along[0], along[1][0], False, PLAIN), mask=mask, other=0)
        item = cols
    elif len(held) == 1:
        both = tl.load(held[0] + base + cols, mask=mask, other=0)
        x, item = element_and_place(both, x_ptr.dtype.element_ty if RAW else tl.int32)
    else:
        x = tl.load(held[0] + base + cols, mask=mask, other=0)
        item = tl.load(held[1] + base + cols, mask=mask, other=0)
    return x, item


@triton.jit
def digit_counts(
    x_ptr, held, base, begin, end, shift, flip, along, RAW: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr
):
    """How often each digit is there from `begin` to `end` of a row. HOW: DESCENDING, PLAIN, INDEX."""
    counts = tl.zeros([16], tl.int32)
    for start in range(begin, end, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(HOW[2])
        x, item = moved_elements(x_ptr, held, base, cols, cols < end, along, RAW, HOW[1])
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
    """counts: [rows, 16, parts]."""
    n, part, parts = integer_value(n, HOW[1]), integer_value(part, HOW[1]), integer_value(parts, HOW[1])
    row = (tl.program_id(0) // parts).to(HOW[2])
    block = tl.program_id(0) % parts
    begin = block.to(HOW[2]) * part
    x_ptr += strided(row, across[0], across[1][0], False, HOW[1])
    end = tl.minimum(begin + part, n)
    counts = digit_counts(x_ptr, held, row * n, begin, end, shift, flip, along, RAW, HOW, BLOCK)
    tl.store(counts_ptr + (row * 16 + tl.arange(0, 16)) * parts + block, counts.to(HOW[2]))


@triton.jit
def digit_starts_kernel(counts_ptr, length, TILE: tl.constexpr):
    """Each of a row's counts, of this length, becomes what those before it come to."""
    counts_ptr += tl.program_id(0).to(tl.int64) * length
    before = tl.zeros([], counts_ptr.dtype.element_ty)
    for start in range(0, length, TILE):
        place = start + tl.arange(0, TILE)
        count = tl.load(counts_ptr + place, mask=place < length, other=0)
        tl.store(counts_ptr + place, before + tl.cumsum(count, 0) - count, mask=place < length)
        before += tl.sum(count, 0)


@triton.jit
def digit_starts(counts_ptr, block, parts, FEW: tl.constexpr, ROWS: tl.constexpr):
    """Where each digit's elements of a part go: behind smaller digits, and those of the parts before.

    counts: [16, parts] of a row; FEW: as they were found, by at most ROWS parts.
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
    """The places of two elements of each of up to 128 lanes, one behind the other, and the starts for what comes then.

    Eight counters of eight bits are one integer: before an element there are 255 others at most.
    """
    shift, shift_2 = (first & 7) * 8, (second & 7) * 8
    one = tl.full(first.shape, 1, tl.int64)
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
    own = tl.where(d < 8, tl.gather(lower_2, last, 0), tl.gather(upper_2, last, 0))
    more = ((behind >> (d & 7) * 8) & 255) + ((own >> (d & 7) * 8) & 255)
    return to, to_2, starts + more.to(starts.dtype)


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
    FEW: tl.constexpr,
    HOW: tl.constexpr,
    LANES: tl.constexpr,
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
        counts = digit_counts(x_ptr, held, base, begin, end, shift, flip, along, RAW, HOW, 2048).to(HOW[2])
        starts = tl.cumsum(counts, 0) - counts
    else:
        starts = digit_starts(counts_ptr + row * 16 * parts, block, parts, FEW, ROWS)
    for start in range(begin, end, 2 * LANES):
        cols = start + tl.arange(0, LANES).to(HOW[2])[:, None] * 2 + tl.arange(0, 2)[None, :]
        x, item = moved_elements(x_ptr, held, base, cols, cols < end, along, RAW, HOW[1])
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


def sorted_by_digits(x, held, outs, sizes, steps, dtypes, HOW):
    """The first elements of m rows of n, `kept`, and their indices in outs; outs None: sorted keys and places.

    held: keys and places to be sorted instead of the elements, or (). dtypes: of keys and places.
    """
    m, n, kept = sizes
    PLAIN, device = HOW[1], x.device
    RAW = not held
    part = triton.cdiv(triton.cdiv(n, max(min(DIGIT_PARTS // m, n // 2048), 1)), 1024) * 1024
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
                x, held, counts, *lengths, *digit, *steps[:2], BLOCK=1024, num_warps=4, RAW=RAW, HOW=HOW
            )
            if not FEW:
                digit_starts_kernel[(m,)](counts, 16 * parts, TILE=8192, num_warps=16)
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
            FEW=FEW,
            LANES=DIGIT_LANES,
            ROWS=FEW_PARTS,
            num_warps=4,
            RAW=RAW,
            HOW=HOW,
        )
        held = to
    return results
