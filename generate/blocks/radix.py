"""A stable radix sort: each block of keys counts its digits, then finds its places from the counts of all blocks."""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import strided, walk

RADIX_BITS = 11  # of a digit, at most
PLACE_BLOCK = 128  # keys, of which all pairs are compared
SORT_BLOCKS = 256  # at most; each reads the counts of all


@triton.jit
def digits_kernel(
    keys_ptr,
    counts_ptr,
    copy_ptr,
    zeros_ptr,
    m,
    n,
    blocks,
    part,
    shift,
    steps,
    FIRST: tl.constexpr,
    DIGITS: tl.constexpr,
    BLOCK: tl.constexpr,
    ZEROS: tl.constexpr,
):
    """counts: [blocks, DIGITS], of `part` keys each.

    At the first digit the keys are copied, and the programs behind those of the blocks zero n elements.
    """
    block = tl.program_id(0).to(tl.int64)
    if block < blocks:
        count = tl.zeros([DIGITS], tl.int32)
        end = tl.minimum(block * part + part, m)
        for start in range(block * part, end, BLOCK):
            i = start + tl.arange(0, BLOCK).to(tl.int64)
            key = tl.load(keys_ptr + strided(i, steps[0], steps[1][0], False, False), mask=i < end, other=0)
            count += tl.histogram(((key >> shift) & (DIGITS - 1)).to(tl.int32), DIGITS, i < end)
            if FIRST:
                tl.store(copy_ptr + i, key.to(copy_ptr.dtype.element_ty), mask=i < end)
        tl.store(counts_ptr + block * DIGITS + tl.arange(0, DIGITS), count)
    if zeros_ptr is not None and block >= blocks:
        i = (block - blocks) * ZEROS + tl.arange(0, ZEROS)
        tl.store(zeros_ptr + i, tl.zeros([ZEROS], zeros_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def places_kernel(
    keys_ptr,
    order_ptr,
    counts_ptr,
    keys_out_ptr,
    order_out_ptr,
    m,
    part,
    shift,
    FIRST: tl.constexpr,
    DIGITS: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Keys of a smaller digit come first, then those of earlier blocks, then those before in the block."""
    block = tl.program_id(0).to(tl.int64)
    digits = tl.arange(0, DIGITS)
    total = tl.zeros([DIGITS], tl.int64)
    place = tl.zeros([DIGITS], tl.int64)
    for first in range(0, tl.num_programs(0), ROWS):
        other = first + tl.arange(0, ROWS)
        mask = (other < tl.num_programs(0))[:, None]
        count = tl.load(counts_ptr + other[:, None] * DIGITS + digits[None, :], mask=mask, other=0)
        total += tl.sum(count, 0)
        place += tl.sum(tl.where((other < block)[:, None], count, 0), 0)
    place += tl.cumsum(total, 0) - total
    lanes = tl.arange(0, BLOCK)
    end = tl.minimum(block * part + part, m)
    for start in range(block * part, end, BLOCK):
        i = start + lanes
        key = tl.load(keys_ptr + i, mask=i < end, other=0)
        digit = ((key >> shift) & (DIGITS - 1)).to(tl.int32)
        earlier = (digit[:, None] == digit[None, :]) & (lanes[None, :] < lanes[:, None])
        to = tl.gather(place, digit, 0) + tl.sum(earlier.to(tl.int32), 1)
        place += tl.histogram(digit, DIGITS, i < end)
        item = i if FIRST else tl.load(order_ptr + i, mask=i < end)
        tl.store(keys_out_ptr + to, key, mask=i < end)
        tl.store(order_out_ptr + to, item.to(order_out_ptr.dtype.element_ty), mask=i < end)


def sort_keys(keys, bound, zeros=None):
    """Integers from 0 below a bound in ascending order, and the flat index of each; `zeros` is zeroed on the way.

    Both are int32 where that holds them, else int64. Launches are two for each digit.
    """
    m = keys.numel()
    bits = max(int(math.log2(triton.next_power_of_2(bound))), 1)
    passes = triton.cdiv(bits, RADIX_BITS)
    bits = triton.cdiv(bits, passes)
    part = triton.cdiv(triton.cdiv(m, SORT_BLOCKS), PLACE_BLOCK) * PLACE_BLOCK
    blocks, digits = triton.cdiv(m, max(part, 1)), 2**bits
    counts = torch.empty((blocks, digits), dtype=torch.int32, device=keys.device)
    dtype = torch.int32 if max(m, bound) < 2**31 else torch.int64
    copy, *spare = [torch.empty(m, dtype=dtype, device=keys.device) for _ in range(5)]
    order, n = copy, 0 if zeros is None else zeros.numel()
    for k in range(passes):
        digits_kernel[(blocks + (0 if k else triton.cdiv(n, 4096)),)](
            keys,
            counts,
            copy,
            zeros,
            m,
            n,
            blocks,
            part,
            k * bits,
            walk([keys], range(keys.dim()), False),
            FIRST=k == 0,
            DIGITS=digits,
            BLOCK=1024,
            ZEROS=4096,
        )
        places_kernel[(blocks,)](
            keys if k else copy,
            order,
            counts,
            *spare[:2],
            m,
            part,
            k * bits,
            FIRST=k == 0,
            DIGITS=digits,
            BLOCK=PLACE_BLOCK,
            ROWS=max(8192 // digits, 1),
            num_warps=8,
        )
        keys, order, spare = *spare[:2], spare[2:] + spare[:2]
    return keys, order
