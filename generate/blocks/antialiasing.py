"""Antialiased bilinear resampling: a triangle filter and its gradient.

The triangle's half-width is one element on the coarser grid (result or input). The callbacks here go to
`windows`, which passes two tuples per axis:

- Integers `a`: input size, result size.
- Floats `f`: input elements per result; 1 - half and 1 + half, with `half` for half the triangle's base; 1 /
  half; and two numbers for the gradient, `back` (results per input element) and `shift`. The first result that
  may use input element i is ceil(i * back - shift).
"""

import math

import torch
import triton
import triton.language as tl
from blocks.types import rounded
from blocks.windows import suggested_format, windows

__all__ = ["antialias", "antialias_backward"]


@triton.jit
def triangle_place(o, a, f):
    """Return the middle of result o in input coordinates, the first element under its triangle, and their number."""
    middle = (o.to(f[0].dtype) + 0.5) * f[0] - 0.5
    low = tl.maximum(tl.floor(middle + f[1]), 0)
    high = tl.minimum(tl.floor(middle + f[2]), a[0].to(middle.dtype))
    return middle, low, tl.maximum(high - low, 0)


@triton.jit
def triangle_share(at, middle, low, n, f):
    """Return the normalized weight at an element: its height divided by the sum of all heights under the triangle.

    That sum has a closed form: the element count minus the sum of their scaled distances from the middle.
    """
    d = middle - low
    before = tl.minimum(tl.maximum(tl.ceil(d), 0), n)
    distance = (2 * before - n) * d + 0.5 * n * (n - 1) - before * (before - 1)
    total = n - distance * f[3]
    return tl.maximum(1 - tl.abs(at - middle) * f[3], 0) / tl.where(total == 0, 1, total)


@triton.jit
def antialiased(o, t, a, f):
    """Return tap t of result o for `windows`: the input element, its weight, and a validity mask."""
    middle, low, n = triangle_place(o, a, f)
    at = low + t.to(middle.dtype)
    return at.to(o.dtype), triangle_share(at, middle, low, n, f), at < low + n


@triton.jit
def antialiased_back(i, t, a, f):
    """Return tap t of input element i for the backward `windows`: the result, its weight, and a validity mask."""
    at = i.to(f[0].dtype)
    o = tl.maximum(tl.ceil(at * f[4] - f[5]), 0).to(i.dtype) + t
    middle, low, n = triangle_place(o, a, f)
    return o, triangle_share(at, middle, low, n, f), (o < a[1]) & (at >= low) & (at < low + n)


def triangle_numbers(n, size, scale, align, dtype):
    """Return ((integers, floats), taps, most) for one axis.

    `taps` bounds the elements under a triangle, and `most` bounds the results that use one element.
    """
    step = 1 / scale if scale is not None and scale > 0 else n / size
    if align:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    step = rounded(step, dtype)
    half = max(step, 1.0)
    taps = min(2 * math.ceil(half) + 1, n)
    back, shift, most = 0.0, 1.0, size
    if step > 0:
        # `slack` covers the rounding of i * back - shift, which grows with the number of results
        back, slack = rounded(1 / step, dtype), 0.01 + size * 1e-6
        shift = (half - 0.5) * back + 0.5 + slack
        most = min(math.floor(2 * half * back + 2 * slack) + 2, size)
    ends = 1 - half, 1 + half, rounded(1 / half, dtype)
    return ((n, size), (step, *ends, back, shift)), taps, most


def triangle_axes(input_size, output_size, scales, align, dtype):
    """Return both axes' numbers, their taps, their result counts, and the compute dtype (fp32 or fp64).

    Raises RuntimeError as ATen does if the sizes do not describe non-empty images.
    """
    if len(input_size) != 4 or len(output_size) != 2 or 0 in input_size[1:] or min(*output_size, *input_size) < 0:
        raise RuntimeError(f"cannot resample sizes {tuple(input_size)} to {tuple(output_size)}")
    if min(output_size) < 1:
        raise RuntimeError(f"cannot resample sizes {tuple(input_size)} to {tuple(output_size)}")
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    sizes = zip(input_size[2:], output_size, scales, strict=True)
    axes = [triangle_numbers(*axis, align, wide) for axis in sizes]
    return [numbers for numbers, _, _ in axes], [n for _, n, _ in axes], [n for _, _, n in axes], wide


def antialias(x, output_size, scales, align):
    """Return x [N, C, H, W] resampled to output_size, in the memory format that ATen gives it."""
    sizes = zip(scales, x.shape[2:], output_size, strict=False)
    # ATen ignores the scale of an axis whose size does not change, but only in the forward pass.
    scales = [None if n == size else scale for scale, n, size in sizes]
    axes, taps, _, dtype = triangle_axes(x.shape, output_size, scales, align, x.dtype)
    size = (*x.shape[:2], *output_size)
    out = torch.empty(size, dtype=x.dtype, device=x.device, memory_format=suggested_format(x))
    return windows(antialiased, "weigh", x, out, axes, taps, float_type=dtype)


def antialias_backward(grad, output_size, input_size, scales, align):
    """Return the gradient with respect to the input.

    Raises RuntimeError if the gradient's shape does not match the sizes.
    """
    axes, _, most, dtype = triangle_axes(input_size, output_size, scales, align, grad.dtype)
    if tuple(grad.shape) != (*input_size[:2], *output_size):
        raise RuntimeError(
            f"gradient {tuple(grad.shape)} does not fit {tuple(input_size)} resampled to {tuple(output_size)}"
        )
    out = torch.empty(input_size, dtype=grad.dtype, device=grad.device, memory_format=suggested_format(grad))
    return windows(antialiased_back, "weigh", grad, out, axes, most, float_type=dtype)
