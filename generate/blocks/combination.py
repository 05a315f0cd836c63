"""Combination of values in a reduction, selected by KIND.

Used by `blocks.reduction` and other row-wise blocks. The values are tuples:

- sum, prod, max, min: One value. NaN wins in max and min.
- argmax, argmin: Value and index; the first index wins among equal values.
- welford: Mean, sum of squared distances from it, and count (Chan, Golub and LeVeque 1979).
- moments: As welford, and the sum, which distinguishes infinities from NaN.
- softmax: Maximum, and the sum of exp(value - maximum) (arXiv:1805.02867).
- safe_softmax: As softmax, and a flag that is set if any value counts.
- sums: Two sums.
- minmax: Minimum and maximum.
"""

import triton
import triton.language as tl

__all__ = ["product_of"]


@triton.jit
def product_of(a, b):
    """Return a * b, as a combine function for `tl.reduce`."""
    return a * b


@triton.jit
def larger_of(a, b):
    """Return the larger value, or NaN if either is NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def smaller_of(a, b):
    """Return the smaller value, or NaN if either is NaN."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def first_larger_of(a, i, b, j):
    """Return the larger value and its index.

    NaN is larger than any number, and the smaller index wins if both are equal or both are NaN.
    """
    nans = (a != a) & (b != b)
    keep = (a > b) | ((a != a) & (b == b)) | (((a == b) | nans) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def first_smaller_of(a, i, b, j):
    """Return the smaller value and its index.

    NaN is smaller than any number, and the smaller index wins if both are equal or both are NaN.
    """
    nans = (a != a) & (b != b)
    keep = (a < b) | ((a != a) & (b == b)) | (((a == b) | nans) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def welford_of(mean, squares, count, other_mean, other_squares, other_count):
    """Return (mean, squares, count) of both groups together; empty groups change nothing."""
    n = count + other_count
    # a share of the distance, not a mean of sums: no cancellation if both means are large
    share = tl.where(n > 0, other_count / tl.where(n > 0, n, 1), 0)
    delta = other_mean - mean
    return mean + delta * share, squares + other_squares + delta * delta * count * share, n


@triton.jit
def softmax_of(peak, total, other_peak, other_total):
    """Return the maximum of both groups, and the sum of exponentials relative to it.

    A group with maximum -inf adds 0 instead of NaN.
    """
    new_peak = tl.maximum(peak, other_peak)
    finite = tl.where(new_peak == float("-inf"), 0, new_peak)  # -inf - -inf would be NaN
    return new_peak, total * tl.exp(peak - finite) + other_total * tl.exp(other_peak - finite)


@triton.jit
def folded_softmax(peaks, totals):
    """Combine values [M, N] along N, with a single exponential per value (a tree of `softmax_of` takes more)."""
    peak = tl.max(peaks, 1)
    finite = tl.where(peak == float("-inf"), 0, peak)
    return peak, tl.sum(totals * tl.exp(peaks - finite[:, None]), 1)


@triton.jit
def combined(a, b, KIND: tl.constexpr):
    """Combine two tuples of values, element by element."""
    if KIND == "sum":
        c = (a[0] + b[0],)
    elif KIND == "sums":
        c = a[0] + b[0], a[1] + b[1]
    elif KIND == "prod":
        c = (a[0] * b[0],)
    elif KIND == "max":
        c = (larger_of(a[0], b[0]),)
    elif KIND == "min":
        c = (smaller_of(a[0], b[0]),)
    elif KIND == "argmax":
        c = first_larger_of(a[0], a[1], b[0], b[1])
    elif KIND == "argmin":
        c = first_smaller_of(a[0], a[1], b[0], b[1])
    elif KIND == "minmax":
        c = smaller_of(a[0], b[0]), larger_of(a[1], b[1])
    elif KIND == "softmax":
        c = softmax_of(a[0], a[1], b[0], b[1])
    elif KIND == "safe_softmax":
        c = softmax_of(a[0], a[1], b[0], b[1]) + (a[2] | b[2],)
    elif KIND == "moments":
        c = welford_of(a[0], a[1], a[2], b[0], b[1], b[2]) + (a[3] + b[3],)
    else:
        c = welford_of(a[0], a[1], a[2], b[0], b[1], b[2])
    return c


@triton.jit
def followed(a, b, step, KIND: tl.constexpr):
    """Combine a with single later elements b, as `combined` does but cheaper.

    `step` elements have made up a so far. For argmax and argmin, a already has an index, and later equal values
    lose. The Welford update divides by a count that is the same for all lanes, so that one division serves all.
    """
    if KIND == "argmax":
        later = ((b[0] > a[0]) | (b[0] != b[0])) & (a[0] == a[0])
        c = tl.where(later, b[0], a[0]), tl.where(later, b[1], a[1])
    elif KIND == "argmin":
        later = ((b[0] < a[0]) | (b[0] != b[0])) & (a[0] == a[0])
        c = tl.where(later, b[0], a[0]), tl.where(later, b[1], a[1])
    elif KIND == "welford" or KIND == "moments":
        share = tl.full([], 1, a[0].dtype) / (tl.zeros([], a[0].dtype) + (step + 1))
        delta = tl.where(b[2] > 0, b[0] - a[0], 0)
        mean = a[0] + delta * share
        c = mean, a[1] + delta * tl.where(b[2] > 0, b[0] - mean, 0), a[2] + b[2]
        if KIND == "moments":
            c = c + (a[3] + b[3],)
    else:
        c = combined(a, b, KIND)
    return c


@triton.jit
def folded(values, KIND: tl.constexpr):
    """Combine a tuple of values [M, N] along N."""
    if KIND == "sum":
        c = (tl.sum(values[0], 1),)
    elif KIND == "sums":
        c = tl.sum(values[0], 1), tl.sum(values[1], 1)
    elif KIND == "prod":
        c = (tl.reduce(values[0], 1, product_of),)
    elif KIND == "max":
        c = (tl.reduce(values[0], 1, larger_of),)
    elif KIND == "min":
        c = (tl.reduce(values[0], 1, smaller_of),)
    elif KIND == "argmax":
        c = tl.reduce(values, 1, first_larger_of)
    elif KIND == "argmin":
        c = tl.reduce(values, 1, first_smaller_of)
    elif KIND == "minmax":
        c = tl.reduce(values[0], 1, smaller_of), tl.reduce(values[1], 1, larger_of)
    elif KIND == "softmax":
        c = folded_softmax(values[0], values[1])
    elif KIND == "safe_softmax":
        c = folded_softmax(values[0], values[1]) + (tl.max(values[2].to(tl.int32), 1) > 0,)
    elif KIND == "moments":
        c = tl.reduce((values[0], values[1], values[2]), 1, welford_of) + (tl.sum(values[3], 1),)
    else:
        c = tl.reduce(values, 1, welford_of)
    return c


@triton.jit
def neutral(values, KIND: tl.constexpr, LEAST: tl.constexpr, MOST: tl.constexpr):
    """Return neutral elements with the shapes of these values; LEAST and MOST are the first type's bounds."""
    if KIND == "sum":
        c = (tl.zeros_like(values[0]),)
    elif KIND == "sums":
        c = tl.zeros_like(values[0]), tl.zeros_like(values[1])
    elif KIND == "prod":
        c = (tl.full(values[0].shape, 1, values[0].dtype),)
    elif KIND == "max":
        c = (tl.full(values[0].shape, LEAST, values[0].dtype),)
    elif KIND == "min":
        c = (tl.full(values[0].shape, MOST, values[0].dtype),)
    elif KIND == "argmax":
        c = (
            tl.full(values[0].shape, LEAST, values[0].dtype),
            # the largest index, which loses against any element with an equal value
            tl.full(values[0].shape, 0x7FFFFFFFFFFFFFFF >> (64 - values[1].dtype.primitive_bitwidth), values[1].dtype),
        )
    elif KIND == "argmin":
        c = (
            tl.full(values[0].shape, MOST, values[0].dtype),
            # the largest index, as for argmax
            tl.full(values[0].shape, 0x7FFFFFFFFFFFFFFF >> (64 - values[1].dtype.primitive_bitwidth), values[1].dtype),
        )
    elif KIND == "minmax":
        c = tl.full(values[0].shape, MOST, values[0].dtype), tl.full(values[1].shape, LEAST, values[1].dtype)
    elif KIND == "softmax":
        c = tl.full(values[0].shape, LEAST, values[0].dtype), tl.zeros_like(values[1])
    elif KIND == "safe_softmax":
        c = tl.full(values[0].shape, LEAST, values[0].dtype), tl.zeros_like(values[1]), tl.zeros_like(values[2])
    else:
        c = tl.zeros_like(values[0]), tl.zeros_like(values[0]), tl.zeros_like(values[0])
        if KIND == "moments":
            c = c + (tl.zeros_like(values[0]),)
    return c


@triton.jit
def spread(values, KIND: tl.constexpr):
    """Return the values from MAP as a tuple; kinds with a single value do not yield one."""
    one: tl.constexpr = KIND == "sum" or KIND == "prod" or KIND == "max" or KIND == "min"
    return (values,) if one else values
