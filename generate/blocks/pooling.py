"""Pooling over sliding windows or over adaptive windows (fixed result size), and its gradients.

A sliding axis has these integers: stride, padding, dilation, window size, input size, window count, counting
mode and divisor. Counting mode 0 counts elements inside the input, 1 includes the padding, and 2 uses the
divisor.
"""

import torch
import triton
import triton.language as tl
from blocks.windows import batched, for_axes, largest_of_windows, suggested_format, window_result, windows


@triton.jit
def window_size(o, a):
    start = o * a[0] - a[1]
    end = tl.minimum(start + a[3], a[4] + a[1])
    size = tl.where(a[6] == 1, end - start, tl.minimum(end, a[4]) - tl.maximum(start, 0))
    return tl.where(a[6] == 2, a[7], tl.maximum(size, 1))


@triton.jit
def sliding(o, t, a, f):
    at = o * a[0] - a[1] + t * a[2]
    return at, window_size(o, a), (at >= 0) & (at < a[4])


@triton.jit
def sliding_inside(o, t, a, f):
    """Return the same as `sliding`, with tap 0 moved to the first tap that is not before the input.

    It serves windows that are larger than the input.
    """
    t = t + (tl.maximum(a[1] - o * a[0], 0) + a[2] - 1) // a[2]
    at = o * a[0] - a[1] + t * a[2]
    return at, window_size(o, a), (at >= 0) & (at < a[4]) & (t < a[3])


@triton.jit
def sliding_back(i, t, a, f):
    """Return the windows that contain element i."""
    before = i + a[1] - (a[3] - 1) * a[2]  # start, in padded input, of the earliest window that reaches element i
    o = tl.where(before > 0, (tl.maximum(before, 1) - 1) // a[0] + 1, 0) + t
    return o, window_size(o, a), (o < a[5]) & (o * a[0] <= i + a[1])


@triton.jit
def adaptive(o, t, a, f):
    """Return tap t for result o; the axis integers are the input size and the result size."""
    start = o * a[0] // a[1]
    size = ((o + 1) * a[0] + a[1] - 1) // a[1] - start
    return start + t, size, t < size


@triton.jit
def adaptive_back(i, t, a, f):
    o = i * a[1] // a[0] + t
    start = o * a[0] // a[1]
    end = ((o + 1) * a[0] + a[1] - 1) // a[1]
    return o, end - start, (o < a[1]) & (start <= i) & (i < end)


def sliding_axes(x, axes, kernel_size, stride, padding, dilation, ceil_mode, counted=0, divisor=0):
    """Return the integers for each axis and the window counts; raise RuntimeError in the same cases as ATen."""
    if x.dim() not in (axes + 1, axes + 2) or 0 in x.shape[x.dim() - axes - 1 :]:
        raise RuntimeError(f"cannot pool {tuple(x.shape)} over {axes} dimensions")
    window, padding, dilation = [for_axes(v, axes) for v in (kernel_size, padding, dilation)]
    stride = for_axes(stride, axes) if len(stride) else window
    numbers, sizes = [], []
    for n, k, s, p, d in zip(x.shape[x.dim() - axes :], window, stride, padding, dilation, strict=True):
        if k <= 0 or s <= 0 or d <= 0 or p < 0 or 2 * p > d * (k - 1) + 1 or p > k // 2:
            raise RuntimeError(f"invalid pooling window: kernel {k}, stride {s}, padding {p}, dilation {d}")
        span = n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)
        count = span // s + 1
        # as in ATen, the last window must begin in the input or in the padding before it
        count -= 1 if ceil_mode and (count - 1) * s >= n + p else 0
        if count < 1:
            raise RuntimeError(f"a window with {k} elements does not fit in {n}")
        numbers.append(((s, p, d, k, n, count, counted, divisor if not numbers else 1), ()))
        sizes.append(count)
    return numbers, sizes


def sliding_taps(axes):
    """Return the axis function and the tap counts: the whole window, or only taps that fit a small input."""
    # a window larger than twice the input would spend most of its taps outside
    taps, inside = [a[3] for a, _ in axes], [min(a[3], -(-a[4] // a[2])) for a, _ in axes]
    larger = any([2 * fit < k for fit, k in zip(inside, taps, strict=True)])
    return (sliding_inside, inside) if larger else (sliding, taps)


def taps_back(axes):
    """Return, for each axis, the largest number of windows that share one element."""
    return [min((a[2] * (a[3] - 1) + a[0]) // a[0], a[5]) for a, _ in axes]


def adaptive_axes(x, axes, output_size):
    """Return the integers for each axis, and the most taps forward and backward.

    Raises RuntimeError in the same cases as ATen.
    """
    output_size = for_axes(output_size, axes)
    if x.dim() not in (axes + 1, axes + 2) or 0 in x.shape[1:] or min(output_size) < 0:
        raise RuntimeError(f"cannot pool {tuple(x.shape)} to {tuple(output_size)}")
    pairs = list(zip(x.shape[x.dim() - axes :], output_size, strict=True))
    numbers = [((n, count), ()) for n, count in pairs]
    return (
        numbers,
        [n // max(m, 1) + 2 if m and n % m else n // max(m, 1) for n, m in pairs],
        [max(m // n, 1) if n % max(m, 1) == 0 or m % n == 0 else -(-m // n) + 1 for n, m in pairs],
    )


def window_average(x, axes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, format):
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    counted = 1 if count_include_pad else 0
    how = (counted, 1) if divisor_override is None else (2, divisor_override)
    numbers, sizes = sliding_axes(x, axes, kernel_size, stride, padding, 1, ceil_mode, *how)
    out = torch.empty((*x.shape[:-axes], *sizes), dtype=x.dtype, device=x.device, memory_format=format)
    function, taps = sliding_taps(numbers)
    windows(function, "mean", batched(x, axes), batched(out, axes), numbers, taps)
    return out


def average_backward(
    grad, x, axes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, format
):
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    counted = 1 if count_include_pad else 0
    how = (counted, 1) if divisor_override is None else (2, divisor_override)
    numbers, sizes = sliding_axes(x, axes, kernel_size, stride, padding, 1, ceil_mode, *how)
    expect_gradient(grad, x, axes, sizes)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device, memory_format=format)
    windows(sliding_back, "share", batched(grad, axes), batched(out, axes), numbers, taps_back(numbers))
    return out


def expect_gradient(grad, x, axes, sizes, indices=None):
    shape = (*x.shape[: x.dim() - axes], *sizes)
    if tuple(grad.shape) != shape or (indices is not None and tuple(indices.shape) != shape):
        raise RuntimeError(f"expected gradient and indices {shape}, got gradient {tuple(grad.shape)}")
    if grad.dtype != x.dtype or (indices is not None and indices.dtype != torch.int64):
        raise RuntimeError(f"expected a {x.dtype} gradient and int64 indices, got gradient {grad.dtype}")


def window_largest(x, axes, kernel_size, stride, padding, dilation, ceil_mode):
    numbers, sizes = sliding_axes(x, axes, kernel_size, stride, padding, dilation, ceil_mode)
    out = window_result(x, (*x.shape[:-axes], *sizes))
    indices = window_result(x, out.shape, torch.int64)
    tensors = [batched(t, axes) for t in (x, out, indices)]
    function, taps = sliding_taps(numbers)
    largest_of_windows(function, *tensors, numbers, taps)
    return out, indices


def largest_backward(grad, x, axes, kernel_size, stride, padding, dilation, ceil_mode, indices):
    numbers, sizes = sliding_axes(x, axes, kernel_size, stride, padding, dilation, ceil_mode)
    expect_gradient(grad, x, axes, sizes, indices)
    out = window_result(x, x.shape)
    arguments = batched(grad, axes), batched(out, axes), numbers, taps_back(numbers), batched(indices, axes)
    windows(sliding_back, "sum", *arguments)
    return out


def adaptive_average(x, axes, output_size):
    numbers, most, _ = adaptive_axes(x, axes, output_size)
    format = suggested_format(x) if axes == 2 else torch.contiguous_format
    shape = (*x.shape[:-axes], *output_size)
    out = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=format)
    windows(adaptive, "mean", batched(x, axes), batched(out, axes), numbers, most)
    return out


def adaptive_average_backward(grad, x, axes):
    numbers, _, most = adaptive_axes(x, axes, grad.shape[-axes:])
    expect_gradient(grad, x, axes, grad.shape[grad.dim() - axes :])
    format = suggested_format(x) if axes == 2 else torch.contiguous_format
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device, memory_format=format)
    windows(adaptive_back, "share", batched(grad, axes), batched(out, axes), numbers, most)
    return out


def adaptive_largest(x, axes, output_size):
    numbers, most, _ = adaptive_axes(x, axes, output_size)
    format = suggested_format(x) if axes == 2 else torch.contiguous_format
    shape = (*x.shape[:-axes], *output_size)
    out = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=format)
    indices = torch.empty(shape, dtype=torch.int64, device=x.device, memory_format=format)
    largest_of_windows(adaptive, *[batched(t, axes) for t in (x, out, indices)], numbers, most)
    return out, indices


def adaptive_largest_backward(grad, x, axes, indices):
    numbers, _, most = adaptive_axes(x, axes, grad.shape[-axes:])
    expect_gradient(grad, x, axes, grad.shape[grad.dim() - axes :], indices)
    format = suggested_format(x) if axes == 2 else torch.contiguous_format
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device, memory_format=format)
    windows(adaptive_back, "sum", batched(grad, axes), batched(out, axes), numbers, most, chosen=batched(indices, axes))
    return out
