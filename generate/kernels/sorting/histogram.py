"""aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) ->
    (Tensor hist, Tensor bin_edges)
aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist,
    Tensor bin_edges)

Elements are looked up in the edges by binary search and sorted by bin. A program instance sums one bin's
weights, in an order that never changes from run to run. The last bin includes its upper edge. NaN and values
out of range are not counted.
"""

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.elementwise import elementwise, flat_index
from blocks.histograms import range_of
from blocks.lines import line
from blocks.offsets import strided, walk
from blocks.radix import sort_keys
from blocks.reduction import reduce
from blocks.search import searched

OVERLOADS = ("aten::histogram.bin_ct", "aten::histogram.bins_tensor")
DTYPES = ("float32", "float64")


@triton.jit
def bin_keys_kernel(x_ptr, edges_ptr, places_ptr, n, bins, steps, BLOCK: tl.constexpr):
    """Replace the number of edges <= x by x's bin, or by `bins` if x is not counted.

    Args:
        x_ptr: [n], read.
        edges_ptr: [bins + 1], read.
        places_ptr: [n] int64, read and written.
        n: Number of elements.
        bins: Number of bins.
        steps: (shape, strides) of x, from `walk`.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, steps[0], steps[1][0], False, False), mask=i < n, other=0)
    edge_count = tl.load(places_ptr + i, mask=i < n, other=0)
    inside = (edge_count > 0) & (x <= tl.load(edges_ptr + bins))
    tl.store(places_ptr + i, tl.where(inside, tl.minimum(edge_count, bins) - 1, bins), mask=i < n)


@triton.jit
def bin_sums_kernel(keys_ptr, order_ptr, weight_ptr, out_ptr, n, depth, steps, BLOCK: tl.constexpr):
    """Store the sum of weights in bin program_id(0), or its element count without weights.

    Two binary searches locate the first and the last (exclusive) element.

    Args:
        keys_ptr: [n] sorted bins, read.
        order_ptr: [n], the element of each sorted bin, read.
        weight_ptr: [n] weights, read, or None.
        out_ptr: [bins], written.
        n: Number of elements.
        depth: Binary search steps.
        steps: (shape, strides) of the weights, from `walk`, or None.
        BLOCK: Weights that are loaded at a time.
    """
    first = tl.program_id(0).to(tl.int64) + tl.arange(0, 2)
    low, high = tl.zeros_like(first), tl.zeros_like(first) + n
    for _ in range(depth):
        middle = (low + high) // 2
        going = low < high
        before = tl.load(keys_ptr + middle, mask=going, other=0) < first
        low = tl.where(going & before, middle + 1, low)
        high = tl.where(going & ~before, middle, high)
    start, end = tl.min(low, 0), tl.max(low, 0)
    if weight_ptr is None:
        tl.store(out_ptr + tl.program_id(0), (end - start).to(out_ptr.dtype.element_ty))
    else:
        total = tl.zeros([BLOCK], out_ptr.dtype.element_ty)
        for at in range(start, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            item = tl.load(order_ptr + i, mask=i < end, other=0).to(tl.int64)
            total += tl.load(weight_ptr + strided(item, steps[0], steps[1][0], False, False), mask=i < end, other=0)
        tl.store(out_ptr + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def density_of(count, total, low, high):
    return count / total / (high - low)


def depth_of(n):
    """Return the number of binary search steps among n elements."""
    return len([k for k in range(63) if n >> k])


def edges_of(x, bins, ends):
    """Return the bin edges as a new tensor with x's dtype."""
    if isinstance(bins, torch.Tensor):
        if bins.dim() != 1 or bins.shape[0] < 2 or bins.dtype != x.dtype:
            raise RuntimeError(
                f"edges must be a {x.dtype} vector with two or more elements, got {bins.dtype} {tuple(bins.shape)}"
            )
        return copied(bins)
    if bins <= 0 or (ends is not None and len(ends) != 2):
        raise RuntimeError(f"expected bins > 0 and a range with two ends, got {bins} and {ends}")
    ends = range_of(x, *(ends or (None, None)), 0.5)
    edges = torch.empty(bins + 1, dtype=x.dtype, device=x.device)
    numbers = bins, max((bins + 1) // 2, 1)
    return elementwise(line, *ends.unbind(0), numbers=numbers, source=(flat_index,), common=x.dtype, out=edges)


def wrapper(self, bins=100, *, range=None, weight=None, density=False):
    if weight is not None and (weight.numel() != self.numel() or weight.dtype != self.dtype):
        raise RuntimeError(
            f"weights {weight.dtype} {tuple(weight.shape)} do not match input {self.dtype} {tuple(self.shape)}"
        )
    edges = edges_of(self, bins, range)
    n, count = self.numel(), edges.shape[0] - 1
    hist = torch.empty(count, dtype=self.dtype, device=self.device)
    places = searched(edges, self, torch.empty(n, dtype=torch.int64, device=self.device), True)
    if n:
        steps = walk([self], [d for d, _ in enumerate(self.shape)], False)
        bin_keys_kernel[(triton.cdiv(n, 1024),)](self, edges, places, n, count, steps, BLOCK=1024)
    keys, order = sort_keys(places, count + 1)
    steps = None if weight is None else walk([weight], [d for d, _ in enumerate(weight.shape)], False)
    bin_sums_kernel[(count,)](keys, order, weight, hist, n, depth_of(n), steps, BLOCK=1024)
    if density:
        total = reduce("sum", [hist], None, dtype=self.dtype)
        hist = elementwise(density_of, hist, total, edges.narrow(0, 0, count), edges.narrow(0, 1, count))
    return hist, edges
