"""How a reduction combines values.

KIND says it: sum, prod, max, min (NaN wins), argmax, argmin (value and index; the first of equals), welford (mean, sum
of squared distances from it, count; Chan, Golub and LeVeque 1979), moments (welford and the sum, which tells infinities
from NaN), softmax (the largest, and the sum of the exponentials of what others are less than it; arXiv:1805.02867),
safe_softmax (those, and whether any is to count), sums (two), minmax.
"""

import triton
import triton.language as tl

__all__ = ["product_of"]


@triton.jit
def product_of(a, b):
    return a * b


@triton.jit
def larger_of(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def smaller_of(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def first_larger_of(a, i, b, j):
    nans = (a != a) & (b != b)
    keep = (a > b) | ((a != a) & (b == b)) | (((a == b) | nans) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def first_smaller_of(a, i, b, j):
    nans = (a != a) & (b != b)
    keep = (a < b) | ((a != a) & (b == b)) | (((a == b) | nans) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def welford_of(mean, squares, count, other_mean, other_squares, other_count):
    n = count + other_count
    share = tl.where(n > 0, other_count / tl.where(n > 0, n, 1), 0)
    delta = other_mean - mean
    return mean + delta * share, squares + other_squares + delta * delta * count * share, n


@triton.jit
def softmax_of(peak, total, other_peak, other_total):
    new_peak = tl.maximum(peak, other_peak)
    finite = tl.where(new_peak == float("-inf"), 0, new_peak)
    return new_peak, total * tl.exp(peak - finite) + other_total * tl.exp(other_peak - finite)


@triton.jit
def folded_softmax(peaks, totals):
    """Of values [M, N] along N: each exponential is taken once."""
    peak = tl.max(peaks, 1)
    finite = tl.where(peak == float("-inf"), 0, peak)
    return peak, tl.sum(totals * tl.exp(peaks - finite[:, None]), 1)


@triton.jit
def combined(a, b, KIND: tl.constexpr):
    """Two tuples of values, element by element."""
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
    """The same, where the values of b are one element's each, later than those of a, of which `step` made a; argmax and
    argmin: a has an index. Divisions are by what is the same for all."""
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
    """A tuple of values [M, N], combined along N."""
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
    """What leaves such values as they are. LEAST, MOST: of the type of the first."""
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
            tl.full(values[0].shape, 0x7FFFFFFFFFFFFFFF >> (64 - values[1].dtype.primitive_bitwidth), values[1].dtype),
        )
    elif KIND == "argmin":
        c = (
            tl.full(values[0].shape, MOST, values[0].dtype),
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
    """A tuple of KIND's values from what MAP gave, which is one value where there is but one."""
    one: tl.constexpr = KIND == "sum" or KIND == "prod" or KIND == "max" or KIND == "min"
    return (values,) if one else values
