"""Concatenation of tensors: up to 32 tensors per launch if all are contiguous with one dtype."""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import SHORT_LAUNCH, TENSORS_PER_LAUNCH, elementwise, pick
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer, integer_value, integers, plain, plain_value, small_tile

JOIN_TILE = 4096  # elements per program, 16 per thread with 8 warps


@triton.jit
def join_kernel(
    xs,
    out_ptr,
    rows,
    row_stride,
    firsts,
    starts,
    widths,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Copy contiguous tensors; each row becomes a part in an output row.

    Args:
        xs: Tuple of pointers, [rows, width] each, contiguous, read.
        out_ptr: [rows, row_stride], written.
        rows: Number of rows.
        row_stride: Elements from one output row to the next.
        firsts: First program of each tensor, encoded by `plain`, see `pick`.
        starts: First output column of each tensor.
        widths: Column count of each tensor.
        PLAIN: True if rows, row_stride, starts and widths are encoded by `plain`.
        BLOCK_M: Rows per tile.
        BLOCK_N: Columns per tile.
    """
    tile = tl.program_id(0) - plain_value(pick(firsts, firsts))
    width = integer_value(pick(widths, firsts), PLAIN)
    tiles = tl.cdiv(width, BLOCK_N)
    row = (tile // tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = (tile % tiles).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (row < integer_value(rows, PLAIN)) & (column < width)
    x = tl.load(pick(xs, firsts) + row * width + column, mask=mask)
    out_ptr += row * integer_value(row_stride, PLAIN) + integer_value(pick(starts, firsts), PLAIN)
    tl.store(out_ptr + column, x, mask=mask)


def promoted(tensors):
    """Return the dtype to which all tensors promote."""
    dtype = tensors[0].dtype
    for other in {t.dtype for t in tensors}:
        dtype = torch.promote_types(dtype, other)
    return dtype


def common_format(tensors):
    """Return the channels-last format that all tensors share, or else the contiguous format."""
    for memory_format, dims in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
        if tensors[0].dim() == dims and all(
            [t.is_contiguous(memory_format=memory_format) and not t.is_contiguous() for t in tensors]
        ):
            return memory_format
    return torch.contiguous_format


def join(tensors, parts, out, dim):
    """Copy each tensor to its part in `out`, by list position, and return `out`.

    The parts are adjacent along dim. If a tensor is not contiguous, or differs from `out` in dtype, all are
    copied one by one.
    """
    if not (out.is_contiguous() and all([t.is_contiguous() and t.dtype == out.dtype for t in tensors])):
        for t, part in zip(tensors, parts, strict=True):
            elementwise(identity, t, common=out.dtype, out=part)
        return out
    rows = math.prod(out.shape[:dim])
    tensors = [t for t in tensors if t.numel()]
    for begin in range(0, len(tensors), TENSORS_PER_LAUNCH):
        before = sum([t.numel() // rows for t in tensors[:begin]])
        _launch_join(tensors[begin : begin + TENSORS_PER_LAUNCH], out, rows, out.numel() // rows, before)
    return out


def _launch_join(tensors, out, rows, width, start):
    widths = [t.numel() // rows for t in tensors]
    if out.numel() < SHORT_LAUNCH:
        BLOCK_M, BLOCK_N = small_tile(max(widths), 1024)
    else:
        BLOCK_N = min(triton.next_power_of_2(max(widths)), JOIN_TILE)
        BLOCK_M = min(triton.next_power_of_2(rows), JOIN_TILE // BLOCK_N)
    firsts, starts, programs = [], [], 0
    for w in widths:
        firsts.append(plain(programs))
        starts.append(start)
        programs += triton.cdiv(rows, BLOCK_M) * triton.cdiv(w, BLOCK_N)
        start += w
    count = len(tensors)
    # few variants matter more than the padding
    missing = (4 if count <= 4 else 8 if count <= 8 else TENSORS_PER_LAUNCH) - count
    tensors, widths, starts = [v + v[-1:] * missing for v in (tensors, widths, starts)]
    firsts += [plain(programs)] * missing
    PLAIN = out.numel() < SMALL_TENSOR
    join_kernel[(programs,)](
        tuple(tensors),
        out,
        integer(rows, PLAIN),
        integer(width, PLAIN),
        tuple(firsts),
        integers(starts, PLAIN),
        integers(widths, PLAIN),
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
