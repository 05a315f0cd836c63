"""Selection: where elements are not zero, in row-major order, and what stands there.

They are counted by block and the counts summed; a size of a result is read back.
"""

import torch
import triton
import triton.language as tl
from blocks.compaction import starts_of
from blocks.offsets import integer, integer_value, strided, walk


@triton.jit
def true_elements(x_ptr, i, n, steps, PLAIN: tl.constexpr):
    """Whether these elements are not zero."""
    x = tl.load(x_ptr + strided(i, steps[0], steps[1][0], False, PLAIN), mask=i < n, other=0)
    return (i < n) & (x != 0)


@triton.jit
def true_counts_kernel(x_ptr, counts_ptr, n, steps, WIDE: tl.constexpr, PLAIN: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    kept = true_elements(x_ptr, program * BLOCK + tl.arange(0, BLOCK), integer_value(n, PLAIN), steps, PLAIN)
    tl.store(counts_ptr + program, tl.sum(kept.to(tl.int64), 0))


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
    """Row r of `out`, of so many at most, is where the r-th element is that counts."""
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    kept = true_elements(x_ptr, i, integer_value(n, PLAIN), steps, PLAIN)
    rank = tl.load(starts_ptr + program) + tl.cumsum(kept.to(tl.int32), 0) - 1
    kept = kept & (rank < limit)
    out_ptr += rank * integer_value(stride[0], PLAIN)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        size = integer_value(shape[k], PLAIN)
        tl.store(out_ptr + k * integer_value(stride[1], PLAIN), (i % size).to(tl.int64), mask=kept)
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
    """Where the mask's r-th true element is, x is written to element r (select); or element r of x, of so many, is
    written there (scatter). steps: of the mask and, for a selection, x; out_steps: of the result."""
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    n = integer_value(n, PLAIN)
    kept = true_elements(mask_ptr, i, n, steps, PLAIN)
    rank = tl.load(starts_ptr + program) + tl.cumsum(kept.to(tl.int32), 0) - 1
    kept = kept & (rank < limit)
    place = strided(i, out_steps[0], out_steps[1][0], False, PLAIN)
    if MODE == "select":
        tl.store(out_ptr + rank, tl.load(x_ptr + place, mask=kept), mask=kept)
    else:
        tl.store(out_ptr + place, tl.load(x_ptr + rank, mask=kept).to(out_ptr.dtype.element_ty), mask=kept)


def true_starts(x):
    """Of each block of 1024 elements how many before it are not zero; and of all, behind the last."""
    n, PLAIN = x.numel(), x.numel() < 65536
    blocks = triton.cdiv(n, 1024)
    counts = torch.empty(blocks, dtype=torch.int64, device=x.device)
    if n:
        steps = walk([x], range(x.dim()), PLAIN)
        true_counts_kernel[(blocks,)](
            x, counts, integer(n, PLAIN), steps, WIDE=_offsets_are_wide(x), PLAIN=PLAIN, BLOCK=1024, num_warps=4
        )
    return starts_of(counts)


def _offsets_are_wide(*tensors):
    farthest = [sum([(n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)]) for t in tensors]
    return max(tensors[0].numel() + 1024, *farthest) > 2147483647


def true_indices(x, starts, out, limit):
    """The indices of elements that are not zero, one a row, in the first rows of `out`: so many at most."""
    n, PLAIN = x.numel(), x.numel() < 65536
    if n and out.numel():
        true_indices_kernel[(triton.cdiv(n, 1024),)](
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
            BLOCK=1024,
            num_warps=4,
        )
    return out


def move_selected(mode, x, mask, starts, out, limit):
    """mode "select": the elements of x where the mask, of its shape, is true, to a contiguous `out`; "scatter": those
    of a contiguous x to where the mask, of the shape of `out`, is true. limit: of the contiguous one's elements."""
    n, PLAIN = mask.numel(), mask.numel() < 65536
    if n:
        other = x if mode == "select" else out
        selected_kernel[(triton.cdiv(n, 1024),)](
            x,
            mask,
            starts,
            out,
            integer(n, PLAIN),
            limit,
            walk([mask], range(mask.dim()), PLAIN),
            walk([other], range(mask.dim()), PLAIN),
            MODE=mode,
            WIDE=_offsets_are_wide(mask, other),
            PLAIN=PLAIN,
            BLOCK=1024,
            num_warps=4,
        )
    return out
