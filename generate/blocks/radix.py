"""Stable radix sort: each block counts its digits, then finds its target positions from all blocks' counts."""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import strided, walk

RADIX_BITS = 11  # most bits per digit: 32 bits take three passes, and a block's 2048 counts fit its registers
PLACE_BLOCK = 128  # keys per step; all pairs of them are compared
SORT_BLOCKS = 256  # most blocks, because each block reads the counts of all
ZERO_BLOCK = 4096  # elements that one program zeroes
COUNTS_AT_ONCE = 8192  # counts that a program reads at once: 32 for each thread in its 8 warps


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
    """Count the digits in each block with `part` keys.

    At the first digit the keys are also copied, and the programs after those for the blocks zero n elements.

    Args:
        keys_ptr: m keys, read; `steps` walks them.
        counts_ptr: [blocks, DIGITS], int32, written.
        copy_ptr: [m], written if FIRST.
        zeros_ptr: [n], zeroed, or None.
        m: number of keys.
        n: number of elements to zero.
        blocks: programs that count keys; the programs after them zero elements.
        part: keys per block.
        shift: lowest bit in this digit.
        steps: walk over the keys.
        FIRST: True for the lowest digit.
        DIGITS: number of different digits, a power of two.
        BLOCK: keys per step.
        ZEROS: elements that one program zeroes.
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
    """Move keys and order to their positions for one digit.

    Smaller digits come first, then earlier blocks, then earlier keys within the block.

    Args:
        keys_ptr: [m], read.
        order_ptr: [m], flat index of each key, read; FIRST replaces it by 0, 1, ...
        counts_ptr: [blocks, DIGITS], read.
        keys_out_ptr: [m], written.
        order_out_ptr: [m], written.
        m: number of keys.
        part: keys per block.
        shift: lowest bit in this digit.
        FIRST: True for the lowest digit.
        DIGITS: number of different digits, a power of two.
        BLOCK: keys per step.
        ROWS: blocks whose counts are read at once.
    """
    block = tl.program_id(0).to(tl.int64)
    digits = tl.arange(0, DIGITS)
    total = tl.zeros([DIGITS], tl.int64)
    position = tl.zeros([DIGITS], tl.int64)
    for first in range(0, tl.num_programs(0), ROWS):
        other_block = first + tl.arange(0, ROWS)
        mask = (other_block < tl.num_programs(0))[:, None]
        count = tl.load(counts_ptr + other_block[:, None] * DIGITS + digits[None, :], mask=mask, other=0)
        total += tl.sum(count, 0)
        position += tl.sum(tl.where((other_block < block)[:, None], count, 0), 0)
    position += tl.cumsum(total, 0) - total  # all smaller digits come before
    lanes = tl.arange(0, BLOCK)
    end = tl.minimum(block * part + part, m)
    # invariant: position[d] is the target of the block's next key with digit d; targets differ, so stores cannot race
    for start in range(block * part, end, BLOCK):
        i = start + lanes
        key = tl.load(keys_ptr + i, mask=i < end, other=0)
        digit = ((key >> shift) & (DIGITS - 1)).to(tl.int32)
        earlier = (digit[:, None] == digit[None, :]) & (lanes[None, :] < lanes[:, None])
        target = tl.gather(position, digit, 0) + tl.sum(earlier.to(tl.int32), 1)
        position += tl.histogram(digit, DIGITS, i < end)
        item = i if FIRST else tl.load(order_ptr + i, mask=i < end)
        tl.store(keys_out_ptr + target, key, mask=i < end)
        tl.store(order_out_ptr + target, item.to(order_out_ptr.dtype.element_ty), mask=i < end)


def sort_keys(keys, bound, zeros=None):
    """Sort integers in [0, bound) and return (keys in ascending order, flat index for each).

    Both results are int32 if that holds them, else int64. `zeros` is a tensor to zero on the way, or None.
    Each digit takes two launches.
    """
    m = keys.numel()
    bits = max(int(math.log2(triton.next_power_of_2(bound))), 1)
    passes = triton.cdiv(bits, RADIX_BITS)
    bits = triton.cdiv(bits, passes)
    part = triton.cdiv(triton.cdiv(m, SORT_BLOCKS), PLACE_BLOCK) * PLACE_BLOCK
    blocks, digits = triton.cdiv(m, max(part, 1)), 2**bits
    counts = torch.empty((blocks, digits), dtype=torch.int32, device=keys.device)
    dtype = torch.int32 if max(m, bound) < 2**31 else torch.int64
    # one copy that the first pass makes, and two pairs of keys and order that the passes swap
    copy, *spare = [torch.empty(m, dtype=dtype, device=keys.device) for _ in range(5)]
    order, n = copy, 0 if zeros is None else zeros.numel()
    for k in range(passes):
        digits_kernel[(blocks + (0 if k else triton.cdiv(n, ZERO_BLOCK)),)](
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
            ZEROS=ZERO_BLOCK,
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
            ROWS=max(COUNTS_AT_ONCE // digits, 1),
            num_warps=8,
        )
        keys, order, spare = *spare[:2], spare[2:] + spare[:2]
    return keys, order
