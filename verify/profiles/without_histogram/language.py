"""Functions of Triton's language for a chip without tl.histogram."""

import triton
import triton.language as tl


@triton.jit
def tl_histogram(x, num_bins: tl.constexpr, mask=None):
    """Return how often each number from 0 to num_bins - 1 occurs in x, [num_bins], int32; `mask` selects elements.

    Each bin compares its number with all of x, one after the other.
    """
    bins = tl.arange(0, num_bins)
    counts = tl.zeros([num_bins], tl.int32)
    for k in range(num_bins):
        is_in_bin = x == k if mask is None else (x == k) & mask
        counts = tl.where(bins == k, tl.sum(is_in_bin.to(tl.int32), 0), counts)
    return counts
