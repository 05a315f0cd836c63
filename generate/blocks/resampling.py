"""Nearest, linear and cubic resampling along each axis (A = -0.75; Keys 1981), and its gradients.

The axis integers are the input size, the result size, and 1 if corners are aligned. The floats are the input
elements per result, the inverse, and the distance before i * inverse at which the first result for i may lie.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.repetition import repeated_sums
from blocks.types import rounded
from blocks.windows import suggested_format, windows


@triton.jit
def nearest_source(o, a, f):
    half = tl.where(a[2] == 1, 0.5, 0.0).to(f[0].dtype)
    at = ((o.to(f[0].dtype) + half) * f[0]).to(o.dtype)  # floor, because it is negative only on overflow
    return tl.maximum(tl.minimum(at, a[0] - 1), 0)


@triton.jit
def nearest(o, t, a, f):
    at = nearest_source(o, a, f)
    return at, 1, at >= 0


@triton.jit
def first_result(i, f):
    return tl.maximum(tl.ceil(i.to(f[0].dtype) * f[1] - f[2]), 0).to(i.dtype)


@triton.jit
def nearest_back(i, t, a, f):
    o = first_result(i, f) + t
    return o, 1, (o < a[1]) & (nearest_source(o, a, f) == i)


@triton.jit
def linear_source(o, a, f):
    """Return the two elements around o, and the second one's weight."""
    at = o.to(f[0].dtype)
    at = tl.where(a[2] == 1, at * f[0], tl.maximum((at + 0.5) * f[0] - 0.5, 0))
    low = tl.minimum(tl.floor(at).to(o.dtype), a[0] - 1)
    share = tl.minimum(tl.maximum(at - low.to(at.dtype), 0), 1)
    return low, tl.minimum(low + 1, a[0] - 1), share


@triton.jit
def linear(o, t, a, f):
    low, high, share = linear_source(o, a, f)
    return tl.where(t == 0, low, high), tl.where(t == 0, 1 - share, share), low >= 0


@triton.jit
def linear_back(i, t, a, f):
    o = first_result(i, f) + t
    low, high, share = linear_source(o, a, f)
    weight = tl.where(low == i, 1 - share, 0) + tl.where(high == i, share, 0)
    # ATen multiplies each neighbor by its own weight, and infinity times a weight of 0 is NaN
    lost = (low == high) & ((share == 0) | (share == 1))
    return o, (weight, lost), (o < a[1]) & ((low == i) | (high == i))


@triton.jit
def cubic_weight(share, t):
    """Return the weight for the element before (t = 0), the two around (1, 2) or the one behind (3)."""
    x = tl.where(t < 2, share, 1 - share)
    far = ((-0.75 * (x + 1) + 3.75) * (x + 1) - 6.0) * (x + 1) + 3.0
    near = (1.25 * x - 2.25) * x * x + 1
    return tl.where((t == 0) | (t == 3), far, near)


@triton.jit
def cubic_source(o, a, f):
    at = o.to(f[0].dtype)
    at = tl.where(a[2] == 1, at * f[0], (at + 0.5) * f[0] - 0.5)
    low = tl.minimum(tl.floor(at).to(o.dtype), a[0] - 1)
    return low, tl.minimum(tl.maximum(at - low.to(at.dtype), 0), 1)


@triton.jit
def cubic(o, t, a, f):
    low, share = cubic_source(o, a, f)
    at = tl.minimum(tl.maximum(low - 1 + t, 0), a[0] - 1)
    return at, cubic_weight(share, t), at >= 0


@triton.jit
def cubic_back(i, t, a, f):
    o = first_result(i, f) + t
    low, share = cubic_source(o, a, f)
    weight = tl.zeros_like(share + t)
    reached = (o < a[0]) & (o > a[0])  # False in the shape of o
    above, below, zero = reached, reached, reached
    for k in tl.static_range(4):
        hit = tl.minimum(tl.maximum(low - 1 + k, 0), a[0] - 1) == i
        part = cubic_weight(share, o * 0 + k)
        weight += tl.where(hit, part, 0)
        above, below, zero = above | (hit & (part > 0)), below | (hit & (part < 0)), zero | (hit & (part == 0))
        reached |= hit
    return o, (weight, (above & below) | zero), reached & (o < a[1])


def axis_numbers(n, size, scale, kind, align, dtype):
    """Return (integers, floats) for an axis in dtype's precision, and the most results that use one element."""
    step = 1 / scale if scale is not None and scale > 0 else n / size
    step = rounded(step, dtype)
    span, before = {"nearest": (1, 0), "exact": (1, 0.5), "linear": (2, 1), "cubic": (4, 2)}[kind]
    if kind == "nearest" and size in (n, 2 * n):
        step = n / size
    elif kind in ("linear", "cubic") and align:
        step = rounded((n - 1) / (size - 1), dtype) if size > 1 else 0.0
    elif kind == "linear" and n == size:
        step, align = 1.0, True
    elif kind in ("linear", "cubic"):
        before = before - 0.5
    slack = 0.01 + size * 1e-6  # margin for rounding, which grows with the position
    back, most = 0.0, size
    shift = 1.0
    if step > 0:
        back = rounded(1 / step, dtype)
        shift = before * back + slack + (0.5 if kind in ("linear", "cubic") and not align else 0)
        shift = 0.5 + slack if kind == "exact" else shift
        last = max(math.ceil((n - 1) * back - shift), 0)
        # if exact, rounding adds no result, and results count in the same way at both ends of a span
        exact = size == n * back and step * back == 1 and not align and slack < 0.25 and span * size % n == 0
        most = span * size // n if exact else math.floor(span * back + 2 * slack) + 2
        most = min(max(most, size - last), size)
    return ((n, size, 1 if align or kind == "exact" else 0), (step, back, shift)), max(most, 1)


def resampled_axes(input_size, output_size, scales, kind, align, dtype):
    """Return the numbers for all axes, the most results per element, and the dtype to compute in.

    Raises RuntimeError in the same cases as ATen.
    """
    sizes = list(zip(input_size[2:], output_size, scales, strict=True))
    if len(input_size) != len(output_size) + 2 or any([n < 1 or m < 1 for n, m, _ in sizes]):
        raise RuntimeError(f"cannot resample sizes {tuple(input_size)} to {tuple(output_size)}")
    dtype = torch.float64 if dtype == torch.float64 and kind in ("linear", "cubic") else torch.float32
    axes = [axis_numbers(*axis, kind, align, dtype) for axis in sizes]
    return [numbers for numbers, _ in axes], [most for _, most in axes], dtype


def axis_functions(kind):
    """Return the axis functions for result and gradient, and the taps per result along each axis."""
    return {
        "nearest": (nearest, nearest_back, 1),
        "exact": (nearest, nearest_back, 1),
        "linear": (linear, linear_back, 2),
        "cubic": (cubic, cubic_back, 4),
    }[kind]


def resample(x, output_size, scales, kind, align=False):
    if not x.is_floating_point() and x.dtype != torch.uint8:
        raise RuntimeError(f"resampling does not support {x.dtype}")
    if x.dim() != len(output_size) + 2 or 0 in x.shape[1:]:
        raise RuntimeError(f"cannot resample {tuple(x.shape)} to {tuple(output_size)}")
    axes, _, dtype = resampled_axes(x.shape, output_size, scales, kind, align, x.dtype)
    size = (*x.shape[:2], *output_size)
    out = torch.empty(size, dtype=x.dtype, device=x.device, memory_format=suggested_format(x))
    axis, _, taps = axis_functions(kind)
    mode = "copy" if taps == 1 else "weigh"
    return windows(axis, mode, x, out, axes, [taps] * len(axes), float_type=dtype)


def repetitions(sizes, output_size, scales):
    """Return how often each element repeats along each axis, or 0 if the count differs between elements."""
    times = [m // n if m % n == 0 else 0 for n, m in zip(sizes, output_size, strict=True)]
    return [k if scale in (None, k) else 0 for k, scale in zip(times, scales, strict=True)]


def resample_backward(grad, output_size, input_size, scales, kind, align=False, like_gradient=True):
    """Return the gradient by the input.

    With like_gradient the result has the gradient's memory format; otherwise it is contiguous.
    """
    axes, most, dtype = resampled_axes(input_size, output_size, scales, kind, align, grad.dtype)
    if tuple(grad.shape) != (*input_size[:2], *output_size) or 0 in grad.shape[1:]:
        raise RuntimeError(
            f"gradient {tuple(grad.shape)} does not fit {tuple(input_size)} resampled to {tuple(output_size)}"
        )
    format = suggested_format(grad) if like_gradient else torch.contiguous_format
    out = torch.empty(input_size, dtype=grad.dtype, device=grad.device, memory_format=format)
    _, axis, taps = axis_functions(kind)
    if taps == 1 and repeated_sums(grad, out, repetitions(input_size[2:], output_size, scales)):
        return out
    return windows(axis, "sum" if taps == 1 else "spread", grad, out, axes, most, float_type=dtype)
