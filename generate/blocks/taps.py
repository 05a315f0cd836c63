"""Taps of a convolution: where each falls in the input, for positions of the result."""

import triton
import triton.language as tl
from blocks.offsets import reach

__all__ = ["axis_integers", "convolved_tap", "spatial_place", "wide_offsets"]


@triton.jit
def spatial_place(i, shape):
    """Batch and coordinates of position i."""
    found = ()
    for k in tl.static_range(len(shape) - 1, -1, -1):
        found = (i % shape[k],) + found
        i = i // shape[k]
    return (i,) + found


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


def wide_offsets(tensors):
    """Whether offsets are wide."""
    return any([max(t.numel(), reach(t.shape, [t.stride()])) > 2147483647 - 2**20 for t in tensors])


def axis_integers(stride, padding, dilation):
    return [v for axis in zip(stride, padding, dilation, strict=True) for v in axis]
