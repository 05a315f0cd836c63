"""Taps of a convolution: where each falls in the input, for positions of the result."""

import math

import triton
import triton.language as tl
from blocks.offsets import reach

__all__ = [
    "axis_integers",
    "convolved_tap",
    "merged_axes",
    "multiples",
    "next_place",
    "one_axis",
    "spatial_place",
    "wide_offsets",
]


@triton.jit
def spatial_place(i, shape):
    """Batch and coordinates of position i."""
    found = ()
    for k in tl.static_range(len(shape) - 1, -1, -1):
        found = (i % shape[k],) + found
        i = i // shape[k]
    return (i,) + found


@triton.jit
def next_place(place, step, shape):
    """The place of positions that lie further on by as many as `step` is the place of: carries, and no divisions."""
    found, carry = (), 0
    for k in tl.static_range(len(shape) - 1, -1, -1):
        at = place[k + 1] + step[k + 1] + carry
        over = at >= shape[k]
        found = (tl.where(over, at - shape[k], at),) + found
        carry = over.to(at.dtype)
    return (place[0] + step[0] + carry,) + found


@triton.jit
def convolved_tap(place, t, window, how, extents, stride, tap_stride, TRANSPOSED: tl.constexpr):
    """Where tap t falls for positions: offset, whether it is inside, and the offset of the tap itself.

    how: of each axis stride, padding and dilation.
    """
    offset, valid = place[0] * stride[0], place[0] >= 0
    own = t * 0
    for k in tl.static_range(len(window) - 1, -1, -1):
        tap = t % window[k]
        t = t // window[k]
        own += tap * tap_stride[k]
        if TRANSPOSED:
            far = place[k + 1] + how[3 * k + 1] - tap * how[3 * k + 2]
            at = tl.maximum(far, 0) // how[3 * k]
            valid &= (far >= 0) & (at * how[3 * k] == far)
        else:
            at = place[k + 1] * how[3 * k] - how[3 * k + 1] + tap * how[3 * k + 2]
        valid &= (at >= 0) & (at < extents[k])
        offset += at * stride[k + 2]
    return offset, valid, own


@triton.jit
def multiples(values, UNIT: tl.constexpr):
    """Each value times UNIT, which the compiler then knows to divide it."""
    found = ()
    for k in tl.static_range(len(values)):
        found = found + (values[k] * UNIT,)
    return found


def wide_offsets(tensors):
    """Whether offsets are wide."""
    return any([max(t.numel(), reach(t.shape, [t.stride()])) > 2147483647 - 2**20 for t in tensors])


def axis_integers(stride, padding, dilation):
    return [v for axis in zip(stride, padding, dilation, strict=True) for v in axis]


def merged_axes(x):
    """x, [batch, channels, ...], with all its axes as one, where they lie behind each other; or as it is."""
    steps = [(x.stride(k), x.stride(k + 1) * x.shape[k + 1]) for k in range(2, x.dim() - 1)]
    if any([step != behind for step, behind in steps]):
        return x
    return x.view(*x.shape[:2], math.prod(x.shape[2:]))


def one_axis(x, weight, out, stride, padding, dilation):
    """A convolution along one axis, where its windows are single elements that lie behind each other; or as it is."""
    single = max(*weight.shape[2:], *stride) == 1 and max(padding) == 0 and x.shape[2:] == out.shape[2:]
    merged = [merged_axes(t) for t in (x, weight, out)]
    if not single or max([t.dim() for t in merged]) > 3:
        return x, weight, out, stride, padding, dilation
    return *merged, stride[:1], padding[:1], dilation[:1]
