"""Copies: materialized views, tensors with the same strides, and one tensor split into several."""

import math

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.elementwise import pick
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer, integer_value, integers, plain, plain_value, small_tile
from blocks.tiles import copy_into

PARTS_PER_LAUNCH = 32  # parts that one launch copies: each adds a pointer and three integers to its arguments
SEPARATE_TILE = 4096  # elements per program instance
MOST_SPREAD = 64  # times its size that a copy's storage may have


def copied(view, out=None):
    """Return a contiguous copy of a view, or copy it into `out`."""
    return copy_into(torch.empty(view.shape, dtype=view.dtype, device=view.device) if out is None else out, view)


def same_strides(x):
    """Return a new tensor with the strides and the storage offset of x.

    It is dense instead if elements of x share memory or lie far apart (more than MOST_SPREAD times its size).
    """
    reached = 1
    for stride, size in sorted([(x.stride(d), x.shape[d]) for d in range(x.dim()) if x.shape[d] > 1]):
        if stride < reached:
            return torch.empty(x.shape, dtype=x.dtype, device=x.device)
        reached += (size - 1) * stride
    if reached > MOST_SPREAD * max(x.numel(), 64):
        return torch.empty_like(x)
    memory = torch.empty(x.storage_offset() + reached, dtype=x.dtype, device=x.device)
    return memory.as_strided(x.shape, x.stride(), x.storage_offset())


@triton.jit
def separate_kernel(
    x_ptr,
    outs,
    rows,
    row_stride,
    firsts,
    starts,
    widths,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Copy parts of the rows in a contiguous tensor to tensors of their own.

    Args:
        x_ptr: [rows, row_stride], read.
        outs: Tuple of pointers to [rows, width], written.
        rows: Row count, encoded by `integer`.
        row_stride: Row length, encoded by `integer`.
        firsts: First program instance of each part, encoded by `plain`.
        starts: First column of each part, encoded by `integers`.
        widths: Number of columns of each part, encoded by `integers`.
        PLAIN: Integers are encoded by `plain`.
        BLOCK_M: Rows per program instance.
        BLOCK_N: Columns per program instance.
    """
    tile = tl.program_id(0) - plain_value(pick(firsts, firsts))
    width = integer_value(pick(widths, firsts), PLAIN)
    tiles = tl.cdiv(width, BLOCK_N)
    row = (tile // tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = (tile % tiles).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (row < integer_value(rows, PLAIN)) & (column < width)
    x_ptr += row * integer_value(row_stride, PLAIN) + integer_value(pick(starts, firsts), PLAIN)
    tl.store(pick(outs, firsts) + row * width + column, tl.load(x_ptr + column, mask=mask), mask=mask)


def separate(x, sizes, dim):
    """Return contiguous copies of the parts with these sizes that follow each other along dim."""
    parts = x.split(sizes, dim)
    outs = [torch.empty(part.shape, dtype=x.dtype, device=x.device) for part in parts]
    if not x.is_contiguous():
        for part, out in zip(parts, outs, strict=True):
            fill(out, part)
        return outs
    rows, step = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    parts_to_copy = [(out, sum(sizes[:k]) * step) for k, out in enumerate(outs) if out.numel()]
    for at in range(0, len(parts_to_copy), PARTS_PER_LAUNCH):
        _launch_separate(x, parts_to_copy[at : at + PARTS_PER_LAUNCH], rows, x.shape[dim] * step)
    return outs


def _launch_separate(x, kept, rows, width):
    """Launch one kernel for up to PARTS_PER_LAUNCH parts.

    The tuple is padded to 4, 8 or PARTS_PER_LAUNCH parts to bound the number of kernel variants; padding parts
    get no program instance.
    """
    widths = [out.numel() // rows for out, _ in kept]
    if x.numel() < SEPARATE_TILE:
        BLOCK_M, BLOCK_N = small_tile(max(widths), 1024)
    else:
        BLOCK_N = min(triton.next_power_of_2(max(widths)), SEPARATE_TILE)
        BLOCK_M = min(triton.next_power_of_2(rows), SEPARATE_TILE // BLOCK_N)
    firsts, programs = [], 0
    for w in widths:
        firsts.append(plain(programs))
        programs += triton.cdiv(rows, BLOCK_M) * triton.cdiv(w, BLOCK_N)
    missing = (4 if len(kept) <= 4 else 8 if len(kept) <= 8 else PARTS_PER_LAUNCH) - len(kept)
    kept, widths = kept + kept[-1:] * missing, widths + widths[-1:] * missing
    PLAIN = x.numel() < SMALL_TENSOR
    separate_kernel[(programs,)](
        x,
        tuple([out for out, _ in kept]),
        integer(rows, PLAIN),
        integer(width, PLAIN),
        tuple(firsts + [plain(programs)] * missing),
        integers([start for _, start in kept], PLAIN),
        integers(widths, PLAIN),
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
