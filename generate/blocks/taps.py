"""Map convolution outputs and taps to input positions."""

import math

import triton
import triton.language as tl
from blocks.limits import INT32_MAX
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

LARGEST_TAP_OFFSET = INT32_MAX - 2**20  # for int32; 2^20 leaves room for the lanes of tiles beyond the last element


@triton.jit
def spatial_place(i, shape):
    """Return the batch index and coordinates for position i."""
    tap_coordinates = ()
    for k in tl.static_range(len(shape) - 1, -1, -1):
        tap_coordinates = (i % shape[k],) + tap_coordinates
        i = i // shape[k]
    return (i,) + tap_coordinates


@triton.jit
def next_place(position, step, shape):
    """Return the coordinates after adding `step`, also in coordinates.

    Carries are propagated, so no division is needed.
    """
    tap_coordinates, carry = (), 0
    for k in tl.static_range(len(shape) - 1, -1, -1):
        coordinate = position[k + 1] + step[k + 1] + carry
        over = coordinate >= shape[k]  # at most one carry: both summands are below the size
        tap_coordinates = (tl.where(over, coordinate - shape[k], coordinate),) + tap_coordinates
        carry = over.to(coordinate.dtype)
    return (position[0] + step[0] + carry,) + tap_coordinates


@triton.jit
def convolved_tap(position, t, window, how, extents, stride, tap_stride, TRANSPOSED: tl.constexpr):
    """Return the input offset for tap t, True if it is in bounds, and the tap's offset in the weight.

    `how` holds stride, padding and dilation for each axis.
    """
    offset, valid = position[0] * stride[0], position[0] >= 0
    tap_offset = t * 0
    for k in tl.static_range(len(window) - 1, -1, -1):
        tap = t % window[k]
        t = t // window[k]
        tap_offset += tap * tap_stride[k]
        if TRANSPOSED:
            far = position[k + 1] + how[3 * k + 1] - tap * how[3 * k + 2]
            at = tl.maximum(far, 0) // how[3 * k]  # only multiples of the stride come from an input element
            valid &= (far >= 0) & (at * how[3 * k] == far)
        else:
            at = position[k + 1] * how[3 * k] - how[3 * k + 1] + tap * how[3 * k + 2]
        valid &= (at >= 0) & (at < extents[k])
        offset += at * stride[k + 2]
    return offset, valid, tap_offset


@triton.jit
def multiples(values, UNIT: tl.constexpr):
    """Return each value times UNIT, which shows the compiler that UNIT divides it."""
    products = ()
    for k in tl.static_range(len(values)):
        products = products + (values[k] * UNIT,)
    return products


def wide_offsets(tensors):
    """Return True if offsets in any tensor may exceed 32 bits."""
    return any([max(t.numel(), reach(t.shape, [t.stride()])) > LARGEST_TAP_OFFSET for t in tensors])


def axis_integers(stride, padding, dilation):
    return [v for axis in zip(stride, padding, dilation, strict=True) for v in axis]


def merged_axes(x):
    """Return x, [batch, channels, ...], with its spatial axes merged if the strides allow it, else x."""
    steps = [(x.stride(k), x.stride(k + 1) * x.shape[k + 1]) for k in range(2, x.dim() - 1)]
    if any([step != behind for step, behind in steps]):
        return x
    return x.view(*x.shape[:2], math.prod(x.shape[2:]))


def one_axis(x, weight, out, stride, padding, dilation):
    """Reduce a 1 x 1 convolution to one axis if the strides allow it.

    Otherwise the arguments are returned as they are.
    """
    single = max(*weight.shape[2:], *stride) == 1 and max(padding) == 0 and x.shape[2:] == out.shape[2:]
    merged = [merged_axes(t) for t in (x, weight, out)]
    if not single or max([t.dim() for t in merged]) > 3:
        return x, weight, out, stride, padding, dilation
    return *merged, stride[:1], padding[:1], dilation[:1]
