"""The first elements of rows in their order: each part of a row is searched for its last one that counts.

Bit by bit the largest integer is found before which there are fewer keys than are wanted; what lies before it is kept,
and of what equals it the first, in the order of their places.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import integer, integer_value, plain, plain_value, strided
from blocks.order import key_bits, keys_at

LEADING_PART = 4096  # elements of a row that one program looks at, at most


@triton.jit
def leading_kernel(
    x_ptr,
    held,
    outs,
    n,
    kept,
    bits,
    across,
    along,
    LOW: tl.constexpr,
    HOW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Keys and places of the first `kept` elements of each BLOCK of rows of n, in the order of their places.

    held: keys and places that were kept before, or () where x has the elements. bits: of keys from bit LOW on. HOW:
    DESCENDING, PLAIN, INDEX.
    """
    n, kept, bits = integer_value(n, HOW[1]), integer_value(kept, HOW[1]), plain_value(bits)
    part = tl.program_id(0) % tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // tl.cdiv(n, BLOCK)).to(HOW[2])
    cols = part.to(HOW[2]) * BLOCK + tl.arange(0, BLOCK)
    x_ptr += strided(row, across[0], across[1][0], False, HOW[1])
    key = keys_at(x_ptr, held, row * n, cols, cols < n, along, HOW[0], HOW[1])
    one = tl.full([], 1, key.dtype)
    bound = -(one << (bits - 1))
    reduced = tl.where(cols < n, key >> LOW, ~bound)
    for k in range(0, bits):
        candidate = bound + (one << (bits - 1 - k))
        fewer = tl.sum((reduced < candidate).to(tl.int32), 0) < kept
        bound = tl.where(fewer, candidate, bound)
    less = reduced < bound
    tied = (reduced == bound) & (cols < n)
    flags = (less.to(tl.int32) << 16) | tied.to(tl.int32)
    before = tl.cumsum(flags, 0) - flags
    needed = kept - tl.sum(less.to(tl.int32), 0)
    chosen = less | (tied & ((before & 0xFFFF) < needed))
    left = n // BLOCK * kept + tl.minimum(n % BLOCK, kept)
    to = row * left + part * kept + (before >> 16) + tl.minimum(before & 0xFFFF, needed)
    item = cols
    if len(held) > 0:
        item = tl.load(held[1] + row * n + cols, mask=chosen, other=0)
    tl.store(outs[0] + to, key, mask=chosen)
    tl.store(outs[1] + to, item, mask=chosen)


def leading(x, held, sizes, steps, dtypes, HOW):
    """Keys and places of the first elements of each part of rows, of these dtypes, and how many they are in a row.

    sizes: m rows of n of which so many are wanted of a part.
    """
    m, n, kept = sizes
    BLOCK = min(triton.next_power_of_2(n), LEADING_PART)
    left = n // BLOCK * kept + min(n % BLOCK, kept)
    low, bits, signed = key_bits(x.dtype)
    outs = tuple([torch.empty((m, left), dtype=d, device=x.device) for d in dtypes])
    leading_kernel[(m * triton.cdiv(n, BLOCK),)](
        x,
        held,
        outs,
        integer(n, HOW[1]),
        integer(kept, HOW[1]),
        plain(bits - low + (0 if signed else 1)),
        *steps,
        LOW=low,
        BLOCK=BLOCK,
        num_warps=8,
        HOW=HOW,
    )
    return outs, left
