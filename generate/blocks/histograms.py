"""Histograms: each element's bin, and the element count in each bin."""

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.offsets import strided, walk
from blocks.reduction import reduce
from blocks.types import compute_types

__all__ = ["add_counts", "bin_counts", "range_of"]

# A program instance counts up to this many bins for itself before it adds them to memory. With more bins, most of
# its counts would be 0, because it has at most 1,024 elements.
LARGEST_HISTOGRAM = 2048


@triton.jit
def range_kernel(least_ptr, most_ptr, ends_ptr, finite_ptr, margin):
    """Write both ends of the range, widened by the margin if they are equal, and a flag for finite ends.

    Args:
        least_ptr: Smallest element, one value, read.
        most_ptr: Largest element, one value, read.
        ends_ptr: [2], written.
        finite_ptr: [1] int64, written: 1 if both are finite.
        margin: Amount added on either side.
    """
    least, most = tl.load(least_ptr), tl.load(most_ptr)
    # x - x is 0 unless x is infinite or NaN
    finite = (least - least == 0) & (most - most == 0)
    tl.store(finite_ptr, finite.to(tl.int64))
    wider = tl.where(least == most, margin, 0.0)
    tl.store(ends_ptr, (least - wider).to(ends_ptr.dtype.element_ty))
    tl.store(ends_ptr + 1, (most + wider).to(ends_ptr.dtype.element_ty))


def range_of(x, low, high, margin):
    """Return the two ends of a range as a tensor on the device.

    The dtype is that of x, or float32 for half precision, in which a margin may be lost.

    Args:
        x: Elements that define the range by default.
        low: Lower end, or None to use the elements (0 to 1 if there are none).
        high: Upper end.
        margin: Amount by which equal ends are moved apart on either side.

    Raises:
        RuntimeError: If the range is not finite, is reversed, or exceeds the dtype.
    """
    ends = torch.empty(2, dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)
    if low is not None or not x.numel():
        low, high = (0.0, 1.0) if low is None else (float(low), float(high))
        most = torch.finfo(x.dtype).max
        if not -most <= low <= high <= most:
            raise RuntimeError(f"invalid range from {low} to {high}")
        for end, value in zip(
            ends.unbind(0), (low - margin * (low == high), high + margin * (low == high)), strict=True
        ):
            fill(end, value)
        return ends
    finite = torch.empty(1, dtype=torch.int64, device=x.device)
    least, most = [reduce(kind, [x], None, dtype=x.dtype) for kind in ("min", "max")]
    range_kernel[(1,)](least, most, ends, finite, margin)
    if not finite.item():
        raise RuntimeError("the input has a minimum or maximum that is not finite")
    return ends


@triton.jit
def add_counts(counts_ptr, bin, inside, bins, SIZE: tl.constexpr):
    """Add a block's element count per bin with atomics.

    SIZE is the length of a histogram in the program instance, at least one entry per bin. With SIZE 0, each
    element is added to global memory.
    """
    if SIZE:
        counts = tl.histogram(bin.to(tl.int32), SIZE, inside)
        k = tl.arange(0, SIZE)
        tl.atomic_add(counts_ptr + k, counts.to(tl.int64), mask=(k < bins) & (counts > 0), sem="relaxed")
    else:
        tl.atomic_add(counts_ptr + bin, tl.full(bin.shape, 1, tl.int64), mask=inside, sem="relaxed")


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
    """Count elements in bins with equal width; the last bin includes its upper end.

    Args:
        x_ptr: n elements, read with `steps`.
        ends_ptr: [2], lower and upper end, read.
        counts_ptr: [bins] int64, initialized to 0, updated with atomics.
        n: Number of elements.
        bins: Number of bins.
        steps: `walk` over the elements of x.
        OPMATH: Type to compute in.
        SIZE: Length of a program instance's histogram, or 0, see `add_counts`.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, steps[0], steps[1][0], False, False), mask=i < n, other=0).to(OPMATH)
    low, high = tl.load(ends_ptr).to(OPMATH), tl.load(ends_ptr + 1).to(OPMATH)
    inside = (i < n) & (x >= low) & (x <= high)
    share = tl.where(inside, x - low, 0)
    # fp32's `/` is approximate on GPUs, but the quotient decides the bin, so it is rounded correctly.
    share = share / (high - low) if OPMATH.is_fp64() else tl.div_rn(share, high - low)
    share *= tl.cast(bins, OPMATH)
    add_counts(counts_ptr, tl.minimum(share.to(tl.int64), bins - 1), inside, bins, SIZE)


def bin_counts(x, bins, ends):
    """Return the element count in each bin between the ends, in x's dtype."""
    out = torch.empty(bins, dtype=x.dtype, device=x.device)
    counts = fill(torch.empty(bins, dtype=torch.int64, device=x.device), 0)
    if x.numel():
        BLOCK = 1024
        even_bins_kernel[(triton.cdiv(x.numel(), BLOCK),)](
            x,
            ends,
            counts,
            x.numel(),
            bins,
            walk([x], range(x.dim()), False),
            OPMATH=compute_types(x.dtype)[1],
            SIZE=max(triton.next_power_of_2(bins), 16) if bins <= LARGEST_HISTOGRAM else 0,
            BLOCK=BLOCK,
        )
    return fill(out, counts)
