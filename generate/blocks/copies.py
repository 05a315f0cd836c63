"""Copies: of what a view shows, into part of a new tensor, and of one tensor into several."""

import math

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.elementwise import pick
from blocks.offsets import integer, integer_value, integers, plain, plain_value, small_tile
from blocks.tiles import copy_into


def copied(view, out=None):
    """A contiguous copy of what a view shows, or `out`."""
    return copy_into(torch.empty(view.shape, dtype=view.dtype, device=view.device) if out is None else out, view)


def same_strides(x):
    """A new tensor with the strides and the storage offset of this one.

    Dense where elements of this one share memory or lie far apart.
    """
    reached = 1
    for stride, size in sorted([(x.stride(d), x.shape[d]) for d in range(x.dim()) if x.shape[d] > 1]):
        if stride < reached:
            return torch.empty(x.shape, dtype=x.dtype, device=x.device)
        reached += (size - 1) * stride
    if reached > 64 * max(x.numel(), 64):
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
    """Parts of the rows of a contiguous tensor, each of which becomes the rows of a tensor of its own."""
    place = tl.program_id(0) - plain_value(pick(firsts, firsts))
    width = integer_value(pick(widths, firsts), PLAIN)
    tiles = tl.cdiv(width, BLOCK_N)
    row = (place // tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = (place % tiles).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (row < integer_value(rows, PLAIN)) & (column < width)
    x_ptr += row * integer_value(row_stride, PLAIN) + integer_value(pick(starts, firsts), PLAIN)
    tl.store(pick(outs, firsts) + row * width + column, tl.load(x_ptr + column, mask=mask), mask=mask)


def separate(x, sizes, dim):
    """Copies of the parts of these sizes that lie one after another along dim."""
    parts = x.split(sizes, dim)
    outs = [torch.empty(part.shape, dtype=x.dtype, device=x.device) for part in parts]
    if not x.is_contiguous():
        for part, out in zip(parts, outs, strict=True):
            fill(out, part)
        return outs
    rows, step = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    kept = [(out, sum(sizes[:k]) * step) for k, out in enumerate(outs) if out.numel()]
    for at in range(0, len(kept), 32):
        _launch_separate(x, kept[at : at + 32], rows, x.shape[dim] * step)
    return outs


def _launch_separate(x, kept, rows, width):
    widths = [out.numel() // rows for out, _ in kept]
    if x.numel() < 4096:
        BLOCK_M, BLOCK_N = small_tile(max(widths), 1024)
    else:
        BLOCK_N = min(triton.next_power_of_2(max(widths)), 4096)
        BLOCK_M = min(triton.next_power_of_2(rows), 4096 // BLOCK_N)
    firsts, programs = [], 0
    for w in widths:
        firsts.append(plain(programs))
        programs += triton.cdiv(rows, BLOCK_M) * triton.cdiv(w, BLOCK_N)
    lacking = (4 if len(kept) <= 4 else 8 if len(kept) <= 8 else 32) - len(kept)
    kept, widths = kept + kept[-1:] * lacking, widths + widths[-1:] * lacking
    PLAIN = x.numel() < 65536
    separate_kernel[(programs,)](
        x,
        tuple([out for out, _ in kept]),
        integer(rows, PLAIN),
        integer(width, PLAIN),
        tuple(firsts + [plain(programs)] * lacking),
        integers([start for _, start in kept], PLAIN),
        integers(widths, PLAIN),
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
