"""Reflection and replication padding; axis integers are the padding before, the inner size and the padded size."""

import torch
import triton
import triton.language as tl
from blocks.windows import batched, suggested_format, windows


@triton.jit
def reflect(o, t, a, f):
    at = o - a[0]
    at = tl.where(at < 0, -at, at)
    at = tl.where(at >= a[1], 2 * (a[1] - 1) - at, at)
    return at, 1, (at >= 0) & (at < a[1])


@triton.jit
def reflect_back(i, t, a, f):
    """Return the output index to which input element i went.

    Tap 0 is the element's own position, tap 1 its mirror image before the first element, and tap 2 the one
    behind the last.
    """
    o = a[0] + tl.where(t == 0, i, tl.where(t == 1, -i, 2 * (a[1] - 1) - i))
    once = (t == 0) | ((t == 1) & (i > 0)) | ((t == 2) & (i < a[1] - 1))
    return o, 1, once & (o >= 0) & (o < a[2])


@triton.jit
def replicate(o, t, a, f):
    at = tl.minimum(tl.maximum(o - a[0], 0), a[1] - 1)
    return at, 1, at >= 0


@triton.jit
def replicate_back(i, t, a, f):
    # copies of the first element come before it, so its results begin at 0
    o = tl.where(i == 0, 0, tl.maximum(i + a[0], 0)) + t
    return o, 1, (o < a[2]) & (tl.minimum(tl.maximum(o - a[0], 0), a[1] - 1) == i)


def padded_axes(x, axes, padding, mirrored):
    """Return the axis integers and the padded sizes; raise RuntimeError in the same cases as ATen."""
    if len(padding) != 2 * axes or x.dim() not in (axes + 1, axes + 2) or 0 in x.shape[x.dim() - axes - 1 :]:
        raise RuntimeError(f"cannot pad {tuple(x.shape)} by {tuple(padding)}")
    numbers = []
    for k, n in enumerate(x.shape[x.dim() - axes :]):
        before, after = padding[2 * (axes - 1 - k)], padding[2 * (axes - 1 - k) + 1]
        if n + before + after < 0 or (mirrored and max(before, after) >= n):
            raise RuntimeError(f"cannot pad {n} elements by {before} and {after}")
        numbers.append(((before, n, n + before + after), ()))
    sizes = [a[2] for a, _ in numbers]
    if max(sizes) < 1:
        raise RuntimeError(f"padding {tuple(padding)} leaves no elements in {tuple(x.shape)}")
    return numbers, sizes


def pad(x, axes, padding, mirrored):
    numbers, sizes = padded_axes(x, axes, padding, mirrored)
    kind = {"dtype": x.dtype, "device": x.device, "memory_format": suggested_format(x)}
    out = torch.empty((*x.shape[:-axes], *sizes), **kind)
    windows(reflect if mirrored else replicate, "copy", batched(x, axes), batched(out, axes), numbers, [1] * axes)
    return out


def pad_backward(grad, x, axes, padding, mirrored):
    numbers, sizes = padded_axes(x, axes, padding, mirrored)
    if tuple(grad.shape) != (*x.shape[:-axes], *sizes) or grad.dtype != x.dtype:
        raise RuntimeError(
            f"gradient {grad.dtype} {tuple(grad.shape)} does not match {x.dtype} {list(x.shape)} padded {list(padding)}"
        )
    kind = {"dtype": x.dtype, "device": x.device, "memory_format": suggested_format(x)}
    out = torch.empty(x.shape, **kind)
    most = [3 if mirrored else max(a[0] + 1, a[2] - max(a[1] - 1 + a[0], 0), a[2] * (a[1] == 1), 1) for a, _ in numbers]
    axis = reflect_back if mirrored else replicate_back
    windows(axis, "sum", batched(grad, axes), batched(out, axes), numbers, most)
    return out
