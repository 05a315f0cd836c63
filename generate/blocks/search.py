"""Binary search in rows that are in ascending order, directly or through a sorter."""

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.limits import INT32_MAX
from blocks.offsets import strided, walk
from blocks.types import common_dtype, compute_types, convert

LARGEST_SEARCH_OFFSET = INT32_MAX - 1024  # for int32; the last program's lanes go beyond the values, by less than 512


@triton.jit
def search_kernel(
    rows_ptr,
    sorter_ptr,
    x_ptr,
    out_ptr,
    n,
    width,
    length,
    depth,
    steps,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    RIGHT: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count, for each of n values, the row elements that come before it.

    A sorter index that is out of bounds reads nothing.

    Args:
        rows_ptr: [rows, length], contiguous, each row in ascending order or sorted by `sorter_ptr`, read.
        sorter_ptr: [rows, length], int64, indices that sort each row, read, or None.
        x_ptr: n values, read, or None if value i is i itself; `steps` walks them.
        out_ptr: [n], written.
        n: number of values.
        width: values per row.
        length: elements per row.
        depth: search steps.
        steps: walk over the values, or None.
        COMMON: type to which elements and values are converted.
        OPMATH: type to compare in.
        RIGHT: equal elements also come before the value.
        WIDE: offsets need int64.
        BLOCK: values per program.
    """
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    if x_ptr is None:
        x = i.to(OPMATH)
    else:
        x = convert(tl.load(x_ptr + strided(i, steps[0], steps[1][0], False, False), mask=i < n, other=0), COMMON)
        x = x.to(OPMATH)
    first = i // width * length
    low, high = tl.zeros_like(i), tl.zeros_like(i) + length
    for _ in range(depth):  # invariant: elements below `low` come before the value, and those from `high` on do not
        middle = (low + high) // 2
        searching = (low < high) & (i < n)
        position = middle
        if sorter_ptr is not None:
            position = tl.load(sorter_ptr + first + middle, mask=searching, other=0)
        valid = searching & (position >= 0) & (position < length)
        element = convert(tl.load(rows_ptr + first + position, mask=valid, other=0), COMMON).to(OPMATH)
        # the comparison is negated, as in ATen, which decides for NaN
        before = ~(element > x) if RIGHT else ~(element >= x)
        low = tl.where(searching & before, middle + 1, low)
        high = tl.where(searching & ~before, middle, high)
    tl.store(out_ptr + i, low.to(out_ptr.dtype.element_ty), mask=i < n)


def searched(rows, x, out, right, sorter=None, width=None):
    """Fill the contiguous `out` with each value's position in its row, and return it.

    `width` is the number of values per row; None means that all values search one row.
    """
    n, length = out.numel(), rows.shape[-1] if rows.dim() else 1
    if not n:
        return out
    common = common_dtype(rows) if x is None else common_dtype(rows, x)
    COMMON, OPMATH = compute_types(common)
    rows = rows if rows.is_contiguous() else copied(rows)
    sorter = sorter if sorter is None or sorter.is_contiguous() else copied(sorter)
    extent = 0 if x is None else sum([(size - 1) * s for size, s in zip(x.shape, x.stride(), strict=True)])
    search_kernel[(triton.cdiv(n, 512),)](
        rows,
        sorter,
        x,
        out,
        n,
        max(n if width is None else width, 1),
        length,
        len([k for k in range(63) if length >> k]),
        None if x is None else walk([x], range(x.dim()), False),
        COMMON=COMMON,
        OPMATH=OPMATH,
        RIGHT=right,
        WIDE=max(n, rows.numel(), extent) > LARGEST_SEARCH_OFFSET,
        BLOCK=512,
        num_warps=4,
    )
    return out


def search_sorted(rows, x, out_int32, right, side=None, sorter=None):
    """Return the indices of values in rows, as torch.searchsorted does.

    Raises RuntimeError for contradictory sides, mismatched shapes or sorters, or rows too long for int32.
    """
    if side is not None and (side not in ("left", "right") or (right and side == "left")):
        raise RuntimeError(f"side must be left or right and agree with right={right}, got {side}")
    if not rows.dim() or (rows.dim() > 1 and rows.shape[:-1] != x.shape[:-1]):
        raise RuntimeError(f"values {tuple(x.shape)} do not fit sorted rows {tuple(rows.shape)}")
    if sorter is not None and (sorter.shape != rows.shape or sorter.dtype != torch.int64):
        raise RuntimeError(f"sorter must be int64 {tuple(rows.shape)}, got {sorter.dtype} {tuple(sorter.shape)}")
    if out_int32 and rows.shape[-1] >= INT32_MAX:
        raise RuntimeError(f"rows with {rows.shape[-1]} elements are too long for int32 indices")
    out = torch.empty(x.shape, dtype=torch.int32 if out_int32 else torch.int64, device=rows.device)
    width = None if rows.dim() == 1 else x.shape[-1]
    return searched(rows, x, out, right or side == "right", sorter, width)
