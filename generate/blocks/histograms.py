"""Histograms: where each element counts, and what elements come to in each bin."""

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.offsets import strided, walk
from blocks.reduction import reduce
from blocks.types import compute_types

__all__ = ["add_counts", "bin_counts", "range_of"]


@triton.jit
def range_kernel(least_ptr, most_ptr, ends_ptr, finite_ptr, margin):
    """The two ends, apart by the margin from each if they are equal, and whether both are finite."""
    least, most = tl.load(least_ptr), tl.load(most_ptr)
    finite = (least - least == 0) & (most - most == 0)
    tl.store(finite_ptr, finite.to(tl.int64))
    wider = tl.where(least == most, margin, 0.0)
    tl.store(ends_ptr, (least - wider).to(ends_ptr.dtype.element_ty))
    tl.store(ends_ptr + 1, (most + wider).to(ends_ptr.dtype.element_ty))


def range_of(x, low, high, margin):
    """Two numbers on the device: the ends of a range, by default those of the elements of x.

    They are of x's dtype, of half precision in float32: a margin may be lost in its digits. margin: what the range is
    wider by on either side where its ends are equal.
    """
    ends = torch.empty(2, dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)
    if low is not None or not x.numel():
        low, high = (0.0, 1.0) if low is None else (float(low), float(high))
        most = torch.finfo(x.dtype).max
        if not -most <= low <= high <= most:
            raise RuntimeError(f"a range from {low} to {high}")
        for end, value in zip(
            ends.unbind(0), (low - margin * (low == high), high + margin * (low == high)), strict=True
        ):
            fill(end, value)
        return ends
    finite = torch.empty(1, dtype=torch.int64, device=x.device)
    least, most = [reduce(kind, [x], None, dtype=x.dtype) for kind in ("min", "max")]
    range_kernel[(1,)](least, most, ends, finite, margin)
    if not finite.item():
        raise RuntimeError("the range of the elements is not finite")
    return ends


@triton.jit
def add_counts(counts_ptr, place, inside, bins, SIZE: tl.constexpr):
    """How many of a block lie in each bin, added by atomics.

    SIZE: of a program's own counts, at least one for each bin; 0: it has none.
    """
    if SIZE:
        counts = tl.histogram(place.to(tl.int32), SIZE, inside)
        k = tl.arange(0, SIZE)
        tl.atomic_add(counts_ptr + k, counts.to(tl.int64), mask=(k < bins) & (counts > 0), sem="relaxed")
    else:
        tl.atomic_add(counts_ptr + place, tl.full(place.shape, 1, tl.int64), mask=inside, sem="relaxed")


@triton.jit
def even_bins_kernel(
    x_ptr,
    ends_ptr,
    counts_ptr,
    n,
    bins,
    steps,
    OPMATH: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Counts in bins of one width, of what lies in the range; the last has its upper end too. SIZE: as add_counts."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, steps[0], steps[1][0], False, False), mask=i < n, other=0).to(OPMATH)
    low, high = tl.load(ends_ptr).to(OPMATH), tl.load(ends_ptr + 1).to(OPMATH)
    inside = (i < n) & (x >= low) & (x <= high)
    share = tl.where(inside, x - low, 0)
    share = share / (high - low) if OPMATH.is_fp64() else tl.div_rn(share, high - low)
    share *= tl.cast(bins, OPMATH)
    add_counts(counts_ptr, tl.minimum(share.to(tl.int64), bins - 1), inside, bins, SIZE)


def bin_counts(x, bins, ends):
    """How many elements of x lie in each bin between the ends, in its dtype."""
    out = torch.empty(bins, dtype=x.dtype, device=x.device)
    counts = fill(torch.empty(bins, dtype=torch.int64, device=x.device), 0)
    if x.numel():
        even_bins_kernel[(triton.cdiv(x.numel(), 1024),)](
            x,
            ends,
            counts,
            x.numel(),
            bins,
            walk([x], range(x.dim()), False),
            OPMATH=compute_types(x.dtype)[1],
            SIZE=max(triton.next_power_of_2(bins), 16) if bins <= 2048 else 0,
            BLOCK=1024,
        )
    return fill(out, counts)
