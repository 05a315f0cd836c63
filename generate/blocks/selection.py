"""Selection of nonzero elements in row-major order: their indices or their values.

Elements are counted per block and the counts are scanned. A result's size is read back to the host.
"""

import torch
import triton
import triton.language as tl
from blocks.compaction import starts_of
from blocks.limits import INT32_MAX, SMALL_TENSOR
from blocks.offsets import integer, integer_value, strided, walk

SELECTION_BLOCK = 1024  # elements per program; kernels that read block starts need the block of the counts


@triton.jit
def true_elements(x_ptr, i, n, steps, PLAIN: tl.constexpr):
    """Return True for elements that are not zero."""
    x = tl.load(x_ptr + strided(i, steps[0], steps[1][0], False, PLAIN), mask=i < n, other=0)
    return (i < n) & (x != 0)


@triton.jit
def true_counts_kernel(x_ptr, counts_ptr, n, steps, WIDE: tl.constexpr, PLAIN: tl.constexpr, BLOCK: tl.constexpr):
    """Count the nonzero elements in each block.

    Args:
        x_ptr: n elements, read; `steps` walks them.
        counts_ptr: [blocks], int64, written.
        n: number of elements, encoded by `integer`.
        steps: walk over the elements.
        WIDE: offsets need int64.
        PLAIN: integers are encoded by `plain`.
        BLOCK: elements per program.
    """
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    is_selected = true_elements(x_ptr, program * BLOCK + tl.arange(0, BLOCK), integer_value(n, PLAIN), steps, PLAIN)
    tl.store(counts_ptr + program, tl.sum(is_selected.to(tl.int64), 0))


@triton.jit
def true_indices_kernel(
    x_ptr,
    starts_ptr,
    out_ptr,
    n,
    limit,
    steps,
    shape,
    stride,
    WIDE: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store the indices of the r-th nonzero element in row r of `out`, for r < limit.

    Args:
        x_ptr: n elements, read; `steps` walks them.
        starts_ptr: nonzero elements before each block, int64, read.
        out_ptr: [limit, dimensions], int64, written with `stride`.
        n: number of elements, encoded by `integer`.
        limit: most rows to store.
        steps: walk over the elements.
        shape: shape of x, encoded by `integer`.
        stride: (row stride, column stride) of the output, encoded by `integer`.
        WIDE: offsets need int64.
        PLAIN: integers are encoded by `plain`.
        BLOCK: elements per program.
    """
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    is_selected = true_elements(x_ptr, i, integer_value(n, PLAIN), steps, PLAIN)
    # the rank is the number of selected elements before this one, so each selected lane has its own row
    rank = tl.load(starts_ptr + program) + tl.cumsum(is_selected.to(tl.int32), 0) - 1
    is_selected = is_selected & (rank < limit)
    out_ptr += rank * integer_value(stride[0], PLAIN)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        size = integer_value(shape[k], PLAIN)
        tl.store(out_ptr + k * integer_value(stride[1], PLAIN), (i % size).to(tl.int64), mask=is_selected)
        i = i // size


@triton.jit
def selected_kernel(
    x_ptr,
    mask_ptr,
    starts_ptr,
    out_ptr,
    n,
    limit,
    steps,
    out_steps,
    MODE: tl.constexpr,
    WIDE: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Copy x at the mask's r-th true position to element r (select), or x's element r to that position (scatter).

    Args:
        x_ptr: source, read; contiguous with at most `limit` elements for "scatter".
        mask_ptr: n elements, read; `steps` walks them.
        starts_ptr: true elements before each block, int64, read.
        out_ptr: result, written; contiguous with at most `limit` elements for "select".
        n: number of elements in the mask, encoded by `integer`.
        limit: elements in the contiguous tensor.
        steps: walk over the mask.
        out_steps: walk over the tensor that has the mask's shape: x for "select", the result for "scatter".
        MODE: "select" or "scatter".
        WIDE: offsets need int64.
        PLAIN: integers are encoded by `plain`.
        BLOCK: elements of the mask per program.
    """
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    n = integer_value(n, PLAIN)
    is_selected = true_elements(mask_ptr, i, n, steps, PLAIN)
    rank = tl.load(starts_ptr + program) + tl.cumsum(is_selected.to(tl.int32), 0) - 1
    is_selected = is_selected & (rank < limit)
    offset = strided(i, out_steps[0], out_steps[1][0], False, PLAIN)
    if MODE == "select":
        tl.store(out_ptr + rank, tl.load(x_ptr + offset, mask=is_selected), mask=is_selected)
    else:
        tl.store(
            out_ptr + offset, tl.load(x_ptr + rank, mask=is_selected).to(out_ptr.dtype.element_ty), mask=is_selected
        )


def true_starts(x):
    """Return the number of nonzero elements before each block of SELECTION_BLOCK, and the total at the end."""
    n, PLAIN = x.numel(), x.numel() < SMALL_TENSOR
    blocks = triton.cdiv(n, SELECTION_BLOCK)
    counts = torch.empty(blocks, dtype=torch.int64, device=x.device)
    if n:
        steps = walk([x], range(x.dim()), PLAIN)
        true_counts_kernel[(blocks,)](
            x,
            counts,
            integer(n, PLAIN),
            steps,
            WIDE=_offsets_are_wide(x),
            PLAIN=PLAIN,
            BLOCK=SELECTION_BLOCK,
            num_warps=4,
        )
    return starts_of(counts)


def _offsets_are_wide(*tensors):
    extents = [sum([(n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)]) for t in tensors]
    return max(tensors[0].numel() + SELECTION_BLOCK, *extents) > INT32_MAX


def true_indices(x, starts, out, limit):
    """Store the indices of nonzero elements, one per row, in the first rows of `out`; at most `limit`."""
    n, PLAIN = x.numel(), x.numel() < SMALL_TENSOR
    if n and out.numel():
        true_indices_kernel[(triton.cdiv(n, SELECTION_BLOCK),)](
            x,
            starts,
            out,
            integer(n, PLAIN),
            limit,
            walk([x], range(x.dim()), PLAIN),
            tuple([integer(size, PLAIN) for size in x.shape]),
            tuple([integer(s, PLAIN) for s in out.stride()]),
            WIDE=_offsets_are_wide(x, out),
            PLAIN=PLAIN,
            BLOCK=SELECTION_BLOCK,
            num_warps=4,
        )
    return out


def move_selected(mode, x, mask, starts, out, limit):
    """Move elements between a contiguous tensor and the true positions in a mask; return `out`.

    Mode "select" reads x, in the mask's shape, into a contiguous `out`. Mode "scatter" writes a contiguous x
    into `out`, in the mask's shape. `limit` is the contiguous tensor's element count.
    """
    n, PLAIN = mask.numel(), mask.numel() < SMALL_TENSOR
    if n:
        strided_tensor = x if mode == "select" else out
        selected_kernel[(triton.cdiv(n, SELECTION_BLOCK),)](
            x,
            mask,
            starts,
            out,
            integer(n, PLAIN),
            limit,
            walk([mask], range(mask.dim()), PLAIN),
            walk([strided_tensor], range(mask.dim()), PLAIN),
            MODE=mode,
            WIDE=_offsets_are_wide(mask, strided_tensor),
            PLAIN=PLAIN,
            BLOCK=SELECTION_BLOCK,
            num_warps=4,
        )
    return out
