"""Histograms over points in several dimensions: bin edges along each dimension, and counts or weights per bin."""

import math

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.elementwise import elementwise, flat_index
from blocks.histograms import LARGEST_HISTOGRAM, add_counts
from blocks.lines import line
from blocks.offsets import strided, walk
from blocks.reduction import reduce

__all__ = ["even_edges", "point_bins"]


@triton.jit
def point_bins_kernel(
    x_ptr,
    edges,
    weight_ptr,
    out_ptr,
    n,
    count,
    depth,
    bins,
    edge_strides,
    x_stride,
    steps,
    weight_steps,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count the points in each bin, or sum their weights, by atomics.

    The last bin along a dimension includes its upper edge. NaN and points outside all bins are not counted.

    Args:
        x_ptr: n points with D numbers each, read with `steps` and `x_stride`.
        edges: Tuple of D pointers to [bins + 1] ascending edges, read.
        weight_ptr: n weights, read with `weight_steps`, or None to count.
        out_ptr: [count] bins, row-major, initialized to 0, updated with atomics.
        n: Number of points.
        count: Number of bins in all dimensions together.
        depth: Binary search steps for the longest edge list.
        bins: Number of bins along each dimension.
        edge_strides: Stride of each edge tensor, in elements.
        x_stride: Stride between the numbers of a point, in elements.
        steps: `walk` over the points.
        weight_steps: `walk` over the weights, or None.
        SIZE: Length of a program's histogram, or 0, see `add_counts`.
        BLOCK: Points per program.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x_ptr += strided(i, steps[0], steps[1][0], False, False)
    inside = i < n
    bin = tl.zeros_like(i)
    for d in tl.static_range(len(bins)):
        x = tl.load(x_ptr + d * x_stride, mask=i < n, other=0)
        low, high = tl.zeros_like(i), tl.zeros_like(i) + bins[d] + 1
        # Invariant: edges before `low` are at most x, and edges from `high` on are larger.
        for _ in range(depth):
            middle = (low + high) // 2
            searching = low < high
            edge = tl.load(edges[d] + middle * edge_strides[d], mask=searching, other=0)
            low = tl.where(searching & ~(edge > x), middle + 1, low)
            high = tl.where(searching & (edge > x), middle, high)
        first = tl.load(edges[d])
        last = tl.load(edges[d] + tl.cast(bins[d], tl.int64) * edge_strides[d])
        inside = inside & (x >= first) & (x <= last)
        bin = bin * bins[d] + tl.maximum(tl.minimum(low, bins[d]) - 1, 0)
    if weight_ptr is None:
        add_counts(out_ptr, bin, inside, count, SIZE)
    else:
        w = tl.load(weight_ptr + strided(i, weight_steps[0], weight_steps[1][0], False, False), mask=inside, other=0)
        tl.atomic_add(out_ptr + bin, w, mask=inside, sem="relaxed")


@triton.jit
def share_of(x, total):
    return x / total


@triton.jit
def density_along(x, high, low):
    return x / (high - low)


@triton.jit
def point_ranges_kernel(least_ptr, most_ptr, ends_ptr, finite_ptr, D, BLOCK: tl.constexpr):
    """Store the two ends along each of D dimensions, and 1 if all ends are finite, else 0.

    Equal ends move apart by a half each.

    Args:
        least_ptr: [D], smallest number along each dimension, read.
        most_ptr: [D], largest number along each dimension, read.
        ends_ptr: [D, 2], written.
        finite_ptr: [1] int64, written.
        D: Number of dimensions.
        BLOCK: D, rounded up to a power of 2.
    """
    d = tl.arange(0, BLOCK)
    least = tl.load(least_ptr + d, mask=d < D, other=0)
    most = tl.load(most_ptr + d, mask=d < D, other=0)
    finite = (least - least == 0) & (most - most == 0)
    tl.store(finite_ptr, tl.min(finite.to(tl.int64), 0))
    wider = tl.where(least == most, 0.5, 0.0).to(least.dtype)
    tl.store(ends_ptr + 2 * d, least - wider, mask=d < D)
    tl.store(ends_ptr + 2 * d + 1, most + wider, mask=d < D)


def own_ranges(self):
    """Return the points' range along each dimension: D pairs of tensors without dimensions.

    Raises RuntimeError if a range is not finite.
    """
    D = self.shape[-1]
    ends = torch.empty((D, 2), dtype=self.dtype, device=self.device)
    finite = torch.empty(1, dtype=torch.int64, device=self.device)
    lead = [d for d in range(self.dim() - 1)]
    least, most = [reduce(kind, [self], lead, dtype=self.dtype) for kind in ("min", "max")]
    point_ranges_kernel[(1,)](least, most, ends, finite, D, BLOCK=triton.next_power_of_2(D))
    if not finite.item():
        raise RuntimeError("the points have a minimum or maximum that is not finite")
    return [pair.unbind(0) for pair in ends.unbind(0)]


def even_edges(self, bins, ends):
    """Return edges for equally wide bins along each dimension, as new tensors in self's dtype.

    `ends` has two numbers per dimension. If it is None, the ranges are those of the points, or 0 to 1 if
    there are no points. Raises RuntimeError if bins, ends and points do not match.
    """
    D = len(bins)
    if self.dim() < 2 or self.shape[-1] != D or (ends is not None and len(ends) != 2 * D) or any([b < 0 for b in bins]):
        raise RuntimeError(f"{bins} bins in ranges {ends} do not fit points {tuple(self.shape)}")
    if ends is None and self.numel():
        pairs = own_ranges(self)
    else:
        ends, most = [0.0, 1.0] * D if ends is None else ends, torch.finfo(self.dtype).max
        pairs = [(ends[2 * d], ends[2 * d + 1]) for d in range(D)]
        if any([not -most <= low <= high <= most for low, high in pairs]):
            raise RuntimeError(f"invalid ranges {pairs}")
        pairs = [(low - 0.5 * (low == high), high + 0.5 * (low == high)) for low, high in pairs]
    edges = []
    for pair, count in zip(pairs, bins, strict=True):
        out = torch.empty(count + 1, dtype=self.dtype, device=self.device)
        numbers = max(count, 1), max((count + 1) // 2, 1)
        elementwise(line, *pair, numbers=numbers, source=(flat_index,), common=self.dtype, out=out)
        edges.append(out)
    return edges


def point_bins(self, edges, weight, density):
    """Return the histogram of points [..., D] in the bins between D edge tensors, in the points' dtype.

    Args:
        self: [..., D] points.
        edges: D tensors with [bins + 1] ascending edges.
        weight: Weights of the points, or None.
        density: If True, divide by the total and by each bin's volume.

    Raises:
        RuntimeError: If edges or weights do not match the points.
    """
    bins, lead = [t.shape[0] - 1 for t in edges], self.shape[:-1]
    if self.dim() < 2 or self.shape[-1] != len(edges) or any([b < 1 for b in bins]):
        raise RuntimeError(f"{bins} bins do not fit points {tuple(self.shape)}")
    if weight is not None and (weight.shape != lead or weight.dtype != self.dtype):
        raise RuntimeError(
            f"weights {weight.dtype} {tuple(weight.shape)} do not fit points {self.dtype} {tuple(self.shape)}"
        )
    out = torch.empty(bins, dtype=self.dtype, device=self.device)
    n, count = math.prod(lead), out.numel()
    sums = fill(torch.empty(count, dtype=torch.int64, device=self.device) if weight is None else out, 0)
    dims = [d for d, _ in enumerate(lead)]
    if self.numel():
        BLOCK = 512
        point_bins_kernel[(triton.cdiv(n, BLOCK),)](
            self,
            tuple(edges),
            weight,
            sums,
            n,
            count,
            len([k for k in range(63) if max(bins) + 1 >> k]),  # bits of the longest edge list's length
            tuple(bins),
            tuple([t.stride(0) for t in edges]),
            self.stride(-1),
            walk([self], dims, False),
            None if weight is None else walk([weight], dims, False),
            SIZE=max(triton.next_power_of_2(count), 16) if count <= LARGEST_HISTOGRAM else 0,
            BLOCK=BLOCK,
        )
    if weight is None:
        fill(out, sums.view(out.shape))
    if density:
        elementwise(share_of, out, reduce("sum", [out], None, dtype=out.dtype), out=out)
        for d, t in enumerate(edges):
            high, low = [t.narrow(0, k, bins[d]).view([-1] + [1] * (len(bins) - 1 - d)) for k in (1, 0)]
            elementwise(density_along, out, high, low, out=out)
    return out
