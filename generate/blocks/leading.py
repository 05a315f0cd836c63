"""Selection of each row's first elements in sorted order, one row part per program.

A bitwise search finds the largest integer that fewer keys than wanted lie below. The elements below it are
selected, and then the first ones equal to it, by position.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import integer, integer_value, plain, plain_value, strided
from blocks.order import key_bits, keys_at

LEADING_PART = 4096  # most elements per row in a program; two such counts fit into one int32


@triton.jit
def leading_kernel(
    x_ptr,
    earlier,
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
    """Store keys and positions for the first `kept` elements in each BLOCK, in position order.

    Args:
        x_ptr: m rows with n elements, read with `across` and `along`, unless an earlier pass left keys.
        earlier: Keys and positions that an earlier pass selected, [m, n] each, read, or () to read x.
        outs: Keys and positions, [m, left] each, written.
        n: Elements per row.
        kept: Elements to select in each BLOCK.
        bits: Key bits from bit LOW on, encoded by `plain`.
        across: `walk` from row to row of x.
        along: `walk` along a row of x.
        LOW: Lowest bit in which two keys can differ.
        HOW: DESCENDING, PLAIN (integers are encoded by `plain`) and INDEX (the type of offsets).
        BLOCK: Elements of a row per program.
    """
    n, kept, bits = integer_value(n, HOW[1]), integer_value(kept, HOW[1]), plain_value(bits)
    part = tl.program_id(0) % tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // tl.cdiv(n, BLOCK)).to(HOW[2])
    cols = part.to(HOW[2]) * BLOCK + tl.arange(0, BLOCK)
    x_ptr += strided(row, across[0], across[1][0], False, HOW[1])
    key = keys_at(x_ptr, earlier, row * n, cols, cols < n, along, HOW[0], HOW[1])
    one = tl.full([], 1, key.dtype)
    bound = -(one << (bits - 1))
    reduced = tl.where(cols < n, key >> LOW, ~bound)
    # Invariant: fewer than `kept` keys are below `bound`, the largest such number in the bits so far.
    for k in range(0, bits):
        candidate = bound + (one << (bits - 1 - k))
        fewer = tl.sum((reduced < candidate).to(tl.int32), 0) < kept
        bound = tl.where(fewer, candidate, bound)
    less = reduced < bound
    tied = (reduced == bound) & (cols < n)
    # one scan counts both: the smaller keys in the upper 16 bits, the equal ones in the lower 16
    flags = (less.to(tl.int32) << 16) | tied.to(tl.int32)
    before = tl.cumsum(flags, 0) - flags
    needed = kept - tl.sum(less.to(tl.int32), 0)
    chosen = less | (tied & ((before & 0xFFFF) < needed))
    left = n // BLOCK * kept + tl.minimum(n % BLOCK, kept)
    target = row * left + part * kept + (before >> 16) + tl.minimum(before & 0xFFFF, needed)
    item = cols
    if len(earlier) > 0:
        item = tl.load(earlier[1] + row * n + cols, mask=chosen, other=0)
    tl.store(outs[0] + target, key, mask=chosen)
    tl.store(outs[1] + target, item, mask=chosen)


def leading(x, earlier, sizes, steps, dtypes, HOW):
    """Return keys and positions for the first elements in each row part, and their number per row.

    `sizes` is (m, n, kept): m rows with n elements, and `kept` wanted elements per part. `dtypes` are for
    keys and positions.
    """
    m, n, kept = sizes
    BLOCK = min(triton.next_power_of_2(n), LEADING_PART)
    left = n // BLOCK * kept + min(n % BLOCK, kept)
    low, bits, signed = key_bits(x.dtype)
    outs = tuple([torch.empty((m, left), dtype=d, device=x.device) for d in dtypes])
    leading_kernel[(m * triton.cdiv(n, BLOCK),)](
        x,
        earlier,
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
