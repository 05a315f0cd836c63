"""Variances and means, by Welford's update (Chan, Golub and LeVeque 1979) or as in blocks/whole_rows.py."""

import triton
import triton.language as tl
from blocks.arithmetic import root
from blocks.reduction import reduce


@triton.jit
def first_moment(x, correction):
    return x, tl.zeros_like(x), tl.full(x.shape, 1, x.dtype)


@triton.jit
def variance_of_moments(mean, squares, seen, n, correction):
    freedom = n.to(mean.dtype) - correction
    return squares / tl.where(freedom > 0, freedom, 0)


@triton.jit
def deviation_of_moments(mean, squares, seen, n, correction):
    return root(variance_of_moments(mean, squares, seen, n, correction))


@triton.jit
def mean_or_nan(mean, seen):
    return tl.where(seen > 0, mean, float("nan"))


@triton.jit
def variance_and_mean(mean, squares, seen, n, correction):
    return variance_of_moments(mean, squares, seen, n, correction), mean_or_nan(mean, seen)


@triton.jit
def deviation_and_mean(mean, squares, seen, n, correction):
    return deviation_of_moments(mean, squares, seen, n, correction), mean_or_nan(mean, seen)


def moments(x, dim, correction, keepdim, finish, dtype):
    """Return the results that `finish` makes from x's moments along dim.

    `correction` is subtracted from the element count; None means 1.
    """
    numbers = (1 if correction is None else correction,)
    return reduce("welford", [x], dim, keepdim, dtype=dtype, map=first_moment, finish=finish, numbers=numbers)
