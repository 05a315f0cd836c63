"""Segment reductions: runs of elements along a dimension, given by lengths or by offsets.

A program takes a tile of segments by columns (the dimensions behind the reduced one), and ROWS elements at a
time. A few long segments are cut into parts, which a second launch combines.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.combination import combined, folded, neutral
from blocks.compaction import starts_of
from blocks.creation import fill
from blocks.limits import PROCESSORS, SMALL_TENSOR
from blocks.offsets import TINY_TENSOR, integer, integer_value, plain, plain_value, strided, walk
from blocks.scan import scan_along
from blocks.types import compute_types, number_argument, number_value, rounded

__all__ = ["over_segments", "reduction_of", "segment_axis", "segment_bounds", "segment_limits"]

SEGMENT_TILE = 2048  # elements of all segments, rows and columns in a tile: 16 for each thread in 4 warps


@triton.jit
def misfits_kernel(bounds_ptr, counts_ptr, count, segments, size, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    """Count invalid segments per block: those out of bounds, or incomplete.

    A segment is invalid if it does not lie within `size` elements. If WHOLE, the last segment in each row
    must end at `size`.

    Args:
        bounds_ptr: [rows, segments + 1], int64, read.
        counts_ptr: [blocks], int64, invalid segments per block, written.
        count: segments in all rows, encoded by `plain`.
        segments: segments per row, encoded by `plain`.
        size: elements along the dimension, encoded by `plain`.
        WHOLE: the last segment in each row must end at `size`.
        BLOCK: segments per program.
    """
    segments, size = plain_value(segments), plain_value(size)
    segment = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = segment < plain_value(count)
    bound = segment + segment // segments
    begin = tl.load(bounds_ptr + bound, mask=mask, other=0)
    end = tl.load(bounds_ptr + bound + 1, mask=mask, other=0)
    wrong = (begin < 0) | (end < begin) | (end > size)
    if WHOLE:
        wrong = wrong | ((segment % segments == segments - 1) & (end != size))
    tl.store(counts_ptr + tl.program_id(0), tl.sum((wrong & mask).to(tl.int64), 0))


@triton.jit
def own_value(x, beside):
    return x


@triton.jit
def segment_limits(bounds_ptr, segment, segments, size, mask):
    """Return first and last (exclusive) element for each segment, clamped to the size.

    Segments are numbered through all rows.
    """
    bound = segment + segment // segments
    begin = tl.maximum(tl.load(bounds_ptr + bound, mask=mask, other=0), 0)
    end = tl.minimum(tl.load(bounds_ptr + bound + 1, mask=mask, other=0), size)
    return begin, tl.maximum(end, begin)


@triton.jit
def segment_result(total, length, MEAN: tl.constexpr):
    """Divide the total by the length if MEAN is set.

    MEAN 1 gives NaN for an empty segment, and MEAN 2 gives its initial value.
    """
    if MEAN > 0:
        share = total / tl.maximum(length, 1).to(total.dtype)
        total = tl.where(length > 0, share, float("nan")) if MEAN == 1 else share
    return total


@triton.jit
def segments_kernel(
    x_ptr,
    beside_ptr,
    bounds_ptr,
    out_ptr,
    count,
    segments,
    size,
    width,
    initial,
    step,
    rows,
    columns,
    KIND: tl.constexpr,
    MAP: tl.constexpr,
    MEAN: tl.constexpr,
    OPMATH: tl.constexpr,
    PARTS: tl.constexpr,
    PLAIN: tl.constexpr,
    SEGMENTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Reduce SEGMENTS segments by COLUMNS columns, one part per program_id(1).

    Args:
        x_ptr: tensor to reduce, read; `step` is its stride along the dimension.
        beside_ptr: [count, width], contiguous second operand for MAP, read, or None.
        bounds_ptr: [rows, segments + 1], int64, read.
        out_ptr: [count, width], or [PARTS, count, width] with values per part, written.
        count: segments in all rows, encoded by `plain`.
        segments: segments per row, encoded by `plain`.
        size: elements along the dimension, encoded by `plain`.
        width: columns: elements behind the dimension, encoded by `integer`.
        initial: value that each result includes, encoded by `number_argument`.
        step: stride of x along the dimension, encoded by `integer`.
        rows: walk over the dimensions before the reduced one.
        columns: walk over the dimensions behind it.
        KIND: combination in blocks/combination.py.
        MAP: device function map(element, beside) that makes the values.
        MEAN: 1 or 2 to divide by the length as in `segment_result`, else 0.
        OPMATH: type to compute in.
        PARTS: parts per segment; with one part the results are final.
        PLAIN: the other integers are encoded by `plain`.
        SEGMENTS: segments per tile.
        ROWS: elements of each segment per step.
        COLUMNS: columns per tile.
    """
    count, segments, size = plain_value(count), plain_value(segments), plain_value(size)
    width = integer_value(width, PLAIN)
    across = tl.cdiv(width, COLUMNS)
    segment = (tl.program_id(0) // across).to(tl.int64) * SEGMENTS + tl.arange(0, SEGMENTS)
    column = (tl.program_id(0) % across).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    known = segment < count
    begin, end = segment_limits(bounds_ptr, segment, segments, size, known)
    length = end - begin
    part = tl.cdiv(length, PARTS)  # differs between segments, so the loop runs to the longest
    begin += tl.program_id(1) * part
    end = tl.minimum(end, begin + part)
    x_ptr += strided(segment // segments, rows[0], rows[1][0], False, PLAIN)[:, None, None]
    x_ptr += strided(column, columns[0], columns[1][0], False, PLAIN)[None, None, :]
    cell = segment[:, None] * width + column[None, :]
    valid = known[:, None] & (column < width)[None, :]
    beside = tl.zeros([SEGMENTS, 1, COLUMNS], OPMATH)
    if beside_ptr is not None:
        beside = tl.load(beside_ptr + cell, mask=valid, other=0).to(OPMATH)[:, None, :]
    none = neutral((tl.zeros([SEGMENTS, ROWS, COLUMNS], OPMATH),), KIND, float("-inf"), float("inf"))
    acc = none
    for start in range(0, tl.max(part, 0), ROWS):
        row = begin[:, None] + start + tl.arange(0, ROWS)[None, :]
        mask = (row < end[:, None])[:, :, None] & valid[:, None, :]
        x = tl.load(x_ptr + (row * integer_value(step, PLAIN))[:, :, None], mask=mask, other=0).to(OPMATH)
        acc = combined(acc, (tl.where(mask, MAP(x, beside), none[0]),), KIND)
    totals = folded(acc, KIND)
    if PARTS == 1:  # otherwise `segment_parts_kernel` includes the initial value, once
        initial = number_value(initial, OPMATH)
        totals = combined((tl.zeros_like(totals[0]) + initial,), totals, KIND)
        result = segment_result(totals[0], length[:, None], MEAN)
        tl.store(out_ptr + cell, result.to(out_ptr.dtype.element_ty), mask=valid)
    else:
        tl.store(out_ptr + tl.program_id(1).to(tl.int64) * count * width + cell, totals[0], mask=valid)


@triton.jit
def segment_parts_kernel(
    parts_ptr,
    bounds_ptr,
    out_ptr,
    parts,
    n,
    segments,
    size,
    width,
    initial,
    KIND: tl.constexpr,
    MEAN: tl.constexpr,
    OPMATH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Combine the parts of each result with the initial value.

    Args:
        parts_ptr: [parts, n], read.
        bounds_ptr: [rows, segments + 1], int64, read.
        out_ptr: [n], written.
        parts: parts per result.
        n: number of results, encoded by `plain`.
        segments: segments per row, encoded by `plain`.
        size: elements along the dimension, encoded by `plain`.
        width: columns per segment, encoded by `plain`.
        initial: value that each result includes, encoded by `number_argument`.
        KIND: combination in blocks/combination.py.
        MEAN: 1 or 2 to divide by the length as in `segment_result`, else 0.
        OPMATH: type to compute in.
        BLOCK: results per program.
    """
    n, segments, width = plain_value(n), plain_value(segments), plain_value(width)
    cell = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = cell < n
    begin, end = segment_limits(bounds_ptr, cell // width, segments, plain_value(size), mask)
    initial = number_value(initial, OPMATH)
    acc = (tl.zeros([BLOCK], OPMATH) + initial,)
    for part in range(parts):  # in a fixed order, so results are reproducible
        acc = combined(acc, (tl.load(parts_ptr + part * n + cell, mask=mask, other=0),), KIND)
    result = segment_result(acc[0], end - begin, MEAN)
    tl.store(out_ptr + cell, result.to(out_ptr.dtype.element_ty), mask=mask)


def reduction_of(name):
    """Return sum, mean, prod, max or min for a reduction name; raise RuntimeError as ATen does."""
    kind = {"amax": "max", "amin": "min"}.get(name, name)
    if kind not in ("sum", "mean", "prod", "max", "min"):
        raise RuntimeError(f"reduce must be sum, mean, prod, max or min, got {name!r}")
    return kind


def segment_axis(x, lengths, offsets, axis):
    """Return the segment dimension, counted from 0.

    Raises RuntimeError or IndexError as ATen does, and also if there are fewer rows of lengths than of x;
    ATen then reads foreign memory.
    """
    spans = lengths if offsets is None else offsets
    if spans is None:
        raise RuntimeError("segments need lengths or offsets")
    if not -x.dim() <= axis < x.dim():
        raise IndexError(f"axis {axis} is out of range for {tuple(x.shape)}")
    axis %= x.dim()
    if spans.dim() != axis + 1 or spans.shape[:axis] != x.shape[:axis] or (spans is offsets and not spans.shape[axis]):
        raise RuntimeError(f"segments {tuple(spans.shape)} do not fit {tuple(x.shape)} along axis {axis}")
    if spans.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"segment lengths and offsets must be int32 or int64, got {spans.dtype}")
    return axis


def segment_bounds(lengths, offsets, size=None):
    """Return segment begins along the last dimension and the last end, as contiguous int64.

    `size` is the data size if misfitting segments must raise RuntimeError, which needs a read-back; None
    skips the check.
    """
    layout = lengths if offsets is None else offsets
    segments = layout.shape[-1] - (offsets is not None)
    bounds = torch.empty((*layout.shape[:-1], segments + 1), dtype=torch.int64, device=layout.device)
    if offsets is None:
        fill(bounds.select(-1, 0), 0)
        fill(bounds.narrow(-1, 1, segments), scan_along("sum", lengths, -1, torch.int64))
    else:
        fill(bounds, offsets)
    if size is not None:
        refuse_other_bounds(bounds, size, offsets is None)
    return bounds


def refuse_other_bounds(bounds, size, whole):
    """Raise RuntimeError if segments exceed `size` elements or, if `whole`, do not cover all elements."""
    segments = bounds.shape[-1] - 1
    count = bounds.numel() // (segments + 1) * segments
    if whole and not count:
        raise RuntimeError("segment lengths are empty")
    blocks = triton.cdiv(count, 1024)
    counts = torch.empty(blocks, dtype=torch.int64, device=bounds.device)
    if blocks:
        sizes = plain(count), plain(segments), plain(size)
        misfits_kernel[(blocks,)](bounds, counts, *sizes, WHOLE=whole, BLOCK=1024)
    if starts_of(counts).select(0, blocks).item():
        raise RuntimeError(f"segment lengths do not add up to {size} elements")


def segment_tile(size, segments, count, width):
    """Return SEGMENTS, ROWS and COLUMNS.

    Small tensors get few different tiles, because the tile does not decide their speed.
    """
    if size * count * width < TINY_TENSOR * segments:
        return (4, 8, 16) if width > 1 else (16, 16, 1)
    COLUMNS = min(triton.next_power_of_2(width), 128)
    ROWS = min(triton.next_power_of_2(max(size // segments, 1)), SEGMENT_TILE // COLUMNS)
    return min(triton.next_power_of_2(count), SEGMENT_TILE // COLUMNS // ROWS), ROWS, COLUMNS


def over_segments(kind, x, axis, bounds, dtype, initial=None, map=None, beside=None):
    """Reduce each segment along `axis` in each column, together with `initial`, into a new tensor.

    Args:
        kind: Result from `reduction_of`.
        x: Tensor to reduce.
        axis: Segment dimension.
        bounds: Result from `segment_bounds`.
        dtype: Result dtype.
        initial: Value to include, or None.
        map: Device function map(element, beside); by default the element.
        beside: Contiguous tensor in the result's shape, or None.
    """
    segments = bounds.shape[-1] - 1
    out = torch.empty((*x.shape[:axis], segments, *x.shape[axis + 1 :]), dtype=dtype, device=x.device)
    n = out.numel()
    if not n:
        return out
    mean = (2 if initial is not None else 1) if kind == "mean" else 0
    if initial is None:
        initial = -math.inf if kind == "max" else math.inf if kind == "min" else kind == "prod"
    initial = number_argument(rounded(initial, x.dtype), x.dtype)
    size, width = x.shape[axis], math.prod(x.shape[axis + 1 :])
    SEGMENTS, ROWS, COLUMNS = segment_tile(size, segments, n // width, width)
    tiles = triton.cdiv(n // width, SEGMENTS) * triton.cdiv(width, COLUMNS)
    parts = max(min(4 * PROCESSORS // tiles, size // segments // (4 * ROWS)), 1)
    partials = torch.empty((parts, n), dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)
    KIND, OPMATH = "sum" if mean else kind, compute_types(x.dtype)[1]
    PLAIN = x.numel() < SMALL_TENSOR
    segments_kernel[(tiles, parts)](
        x,
        beside,
        bounds,
        out if parts == 1 else partials,
        plain(n // width),
        plain(segments),
        plain(size),
        integer(width, PLAIN),
        initial,
        integer(x.stride(axis), PLAIN),
        walk([x], range(axis), PLAIN),
        walk([x], range(axis + 1, x.dim()), PLAIN),
        KIND=KIND,
        MEAN=mean,
        OPMATH=OPMATH,
        MAP=map or own_value,
        PARTS=parts,
        PLAIN=PLAIN,
        SEGMENTS=SEGMENTS,
        ROWS=ROWS,
        COLUMNS=COLUMNS,
    )
    if parts > 1:
        sizes = plain(n), plain(segments), plain(size), plain(width)
        segment_parts_kernel[(triton.cdiv(n, 256),)](
            partials, bounds, out, parts, *sizes, initial, KIND=KIND, MEAN=mean, OPMATH=OPMATH, BLOCK=256
        )
    return out
