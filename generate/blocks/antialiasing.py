"""Resampling by a triangle that is as wide as an element of the result, or of the input if that is wider; gradients.

Integers of an axis: sizes of the input and of the result; floats: elements of the input for one of the result, half the
triangle's base, its inverse, how many results an element is wide, and how far before that many times i the first result
may lie that i goes to.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.types import rounded
from blocks.windows import suggested_format, windows

__all__ = ["antialias", "antialias_backward"]


@triton.jit
def triangle_base(o, a, f):
    """The middle, the first element under the triangle of result o, and that after the last."""
    middle = (o.to(f[0].dtype) + 0.5) * f[0]
    low = tl.maximum(tl.floor(middle - f[1] + 0.5), 0).to(o.dtype)
    return middle, low, tl.minimum(tl.floor(middle + f[1] + 0.5).to(o.dtype), a[0])


@triton.jit
def triangle_height(at, middle, f):
    return tl.maximum(1 - tl.abs((at.to(middle.dtype) - middle + 0.5) * f[2]), 0)


@triton.jit
def triangle_share(at, middle, low, high, f):
    """The height at an element, by the sum of all heights: their number less the distances before and behind."""
    n = tl.maximum(high - low, 0)
    before = tl.minimum(tl.maximum(tl.ceil(middle - 0.5).to(low.dtype) - low, 0), n).to(middle.dtype)
    behind = n.to(middle.dtype) - before
    first = low.to(middle.dtype) - middle + 0.5
    distance = before * (-first - (before - 1) * 0.5) + behind * (first + before + (behind - 1) * 0.5)
    total = n.to(middle.dtype) - distance * f[2]
    return triangle_height(at, middle, f) / tl.where(total == 0, 1, total)


@triton.jit
def antialiased(o, t, a, f):
    middle, low, high = triangle_base(o, a, f)
    return low + t, triangle_share(low + t, middle, low, high, f), low + t < high


@triton.jit
def antialiased_back(i, t, a, f):
    o = tl.maximum(tl.ceil(i.to(f[0].dtype) * f[3] - f[4]), 0).to(i.dtype) + t
    middle, low, high = triangle_base(o, a, f)
    return o, triangle_share(i, middle, low, high, f), (o < a[1]) & (i >= low) & (i < high)


def triangle_numbers(n, size, scale, align, dtype):
    """(integers, floats) of an axis, and the most results that an element goes to."""
    step = 1 / scale if scale is not None and scale > 0 else n / size
    if align:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    step = rounded(step, dtype)
    half = max(step, 1.0)
    taps = min(2 * math.ceil(half) + 1, n)
    back, shift, most = 0.0, 1.0, size
    if step > 0:
        back, slack = rounded(1 / step, dtype), 0.01 + size * 1e-6
        shift = (half - 0.5) * back + 0.5 + slack
        most = min(math.floor(2 * half * back + 2 * slack) + 2, size)
    return ((n, size), (step, half, rounded(1 / half, dtype), back, shift)), taps, most


def triangle_axes(input_size, output_size, scales, align, dtype):
    """Of both axes. Raises RuntimeError as ATen."""
    if len(input_size) != 4 or len(output_size) != 2 or 0 in input_size[1:] or min(*output_size, *input_size) < 0:
        raise RuntimeError(f"resampling of {tuple(input_size)} to {tuple(output_size)}")
    if min(output_size) < 1:
        raise RuntimeError(f"resampling of {tuple(input_size)} to {tuple(output_size)}")
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    sizes = zip(input_size[2:], output_size, scales, strict=True)
    found = [triangle_numbers(*own, align, wide) for own in sizes]
    return [numbers for numbers, _, _ in found], [n for _, n, _ in found], [n for _, _, n in found], wide


def antialias(x, output_size, scales, align):
    sizes = zip(scales, x.shape[2:], output_size, strict=False)
    scales = [None if n == size else scale for scale, n, size in sizes]  # as ATen, but not of gradients
    axes, taps, _, dtype = triangle_axes(x.shape, output_size, scales, align, x.dtype)
    size = (*x.shape[:2], *output_size)
    out = torch.empty(size, dtype=x.dtype, device=x.device, memory_format=suggested_format(x))
    return windows(antialiased, "weigh", x, out, axes, taps, float_type=dtype)


def antialias_backward(grad, output_size, input_size, scales, align):
    axes, _, most, dtype = triangle_axes(input_size, output_size, scales, align, grad.dtype)
    if tuple(grad.shape) != (*input_size[:2], *output_size):
        raise RuntimeError(f"gradient {tuple(grad.shape)} of {tuple(input_size)} resampled to {tuple(output_size)}")
    out = torch.empty(input_size, dtype=grad.dtype, device=grad.device, memory_format=suggested_format(grad))
    return windows(antialiased_back, "weigh", grad, out, axes, most, float_type=dtype)
