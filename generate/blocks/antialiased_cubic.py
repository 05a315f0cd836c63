"""Antialiased bicubic resampling (A = -0.5; Keys 1981) and its gradient.

The cubic is four elements wide, measured on the coarser grid (result or input). The axes are resampled one
after the other. A first kernel computes the weights for each result along an axis: the range under the cubic,
and normalized shares that add up to 1. The backward pass gathers, for each input element, the gradients from
all results that used it.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.offsets import plain, plain_value
from blocks.types import number_argument, number_value, rounded
from blocks.windows import suggested_format


@triton.jit
def cubic_height(x):
    """Return the cubic's height at distance x >= 0 from its middle."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return tl.where(x < 1, near, tl.where(x < 2, far, 0.0))


@triton.jit
def cubic_shares_kernel(shares_ptr, ends_ptr, n, taps, numbers, BLOCK: tl.constexpr):
    """Compute the weights and the input range for one result per program instance.

    Args:
        shares_ptr: [size, taps], written: normalized weights.
        ends_ptr: [size, 2] int32, written: the first input element under the cubic, and the first one behind
            it.
        n: Input size, encoded by `plain`.
        taps: Row length of `shares`, encoded by `plain`.
        numbers: Input elements per result, half the cubic's width, and the inverse of half that, encoded by
            `number_argument`.
        BLOCK: Taps per step.
    """
    TYPE: tl.constexpr = shares_ptr.dtype.element_ty
    step, half, inverse = number_value(numbers[0], TYPE), number_value(numbers[1], TYPE), number_value(numbers[2], TYPE)
    n, taps = plain_value(n), plain_value(taps)
    row = tl.program_id(0)
    middle = (row.to(TYPE) + 0.5) * step
    low = tl.maximum(tl.floor(middle - half + 0.5), 0).to(tl.int32)
    high = tl.minimum(tl.floor(middle + half + 0.5), n.to(TYPE)).to(tl.int32)
    total = tl.zeros([], TYPE)
    for start in range(0, taps, BLOCK):
        at = low + start + tl.arange(0, BLOCK)
        height = cubic_height(tl.abs(at.to(TYPE) + 0.5 - middle) * inverse)
        total += tl.sum(tl.where(at < high, height, 0), 0)
    total = tl.where(total == 0, 1, total)  # no element under the cubic: its shares are 0, not NaN
    for start in range(0, taps, BLOCK):
        t = start + tl.arange(0, BLOCK)
        height = cubic_height(tl.abs((low + t).to(TYPE) + 0.5 - middle) * inverse)
        tl.store(shares_ptr + row.to(tl.int64) * taps + t, height / total, mask=t < taps)
    tl.store(ends_ptr + row * 2, low)
    tl.store(ends_ptr + row * 2 + 1, tl.minimum(high, low + taps))


@triton.jit
def along_axis_kernel(
    x_ptr, out_ptr, shares_ptr, ends_ptr, sizes, back, shift, BACK: tl.constexpr, BLOCK: tl.constexpr
):
    """Resample one axis of x [outer, elements, inner] to out [outer, results, inner], or compute the gradient (BACK).

    With BACK, x holds the gradients of the results and out the gradients of the elements. The gather loops over
    all results whose range may contain the element, and masks those whose range does not. The sum therefore
    needs no atomics and has a fixed order.

    Args:
        x_ptr: [outer, elements, inner], or [outer, results, inner] with BACK, contiguous, read.
        out_ptr: [outer, results, inner], or [outer, elements, inner] with BACK, contiguous, written.
        shares_ptr: [results, taps], from `cubic_shares_kernel`, read.
        ends_ptr: [results, 2] int32, from `cubic_shares_kernel`, read.
        sizes: Outer, elements, results, inner, taps, and the largest result count that uses an element, encoded
            by `plain`.
        back: Results per input element; the first result that may use element i is ceil(i * back - shift). Only
            read with BACK.
        shift: See `back`; both are encoded by `number_argument`.
        BACK: Compute the gradient.
        BLOCK: Elements of `out` per program instance.
    """
    TYPE: tl.constexpr = shares_ptr.dtype.element_ty
    elements, results, inner = plain_value(sizes[1]), plain_value(sizes[2]), plain_value(sizes[3])
    taps, most = plain_value(sizes[4]), plain_value(sizes[5])
    length, other = (elements, results) if BACK else (results, elements)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(sizes[0]).to(tl.int64) * length * inner
    position = (i // inner % length).to(tl.int32)
    x_ptr += i // inner // length * other * inner + i % inner
    acc = tl.zeros([BLOCK], TYPE)
    if BACK:
        first = tl.maximum(tl.ceil(position.to(TYPE) * number_value(back, TYPE) - number_value(shift, TYPE)), 0)
        for t in range(0, most):
            at = first.to(tl.int32) + t
            inside = mask & (at < results)
            low = tl.load(ends_ptr + at * 2, mask=inside, other=0)
            inside = inside & (position >= low) & (position < tl.load(ends_ptr + at * 2 + 1, mask=inside, other=0))
            share = tl.load(shares_ptr + at.to(tl.int64) * taps + position - low, mask=inside, other=0)
            acc += share * tl.load(x_ptr + at.to(tl.int64) * inner, mask=inside, other=0)
    else:
        low = tl.load(ends_ptr + position * 2, mask=mask, other=0)
        high = tl.load(ends_ptr + position * 2 + 1, mask=mask, other=0)
        for t in range(0, taps):
            inside = mask & (low + t < high)
            share = tl.load(shares_ptr + position.to(tl.int64) * taps + t, mask=inside, other=0)
            acc += share * tl.load(x_ptr + (low + t).to(tl.int64) * inner, mask=inside, other=0)
    tl.store(out_ptr + i, acc, mask=mask)


def along_axis(x, out, dim, scale, align, back):
    """Resample x along dim into out, both contiguous.

    Args:
        x: Input, or the result's gradient with `back`.
        out: Result, or the input's gradient with `back`.
        dim: Axis to resample.
        scale: Scale factor (result per input elements), or None to use the size ratio.
        align: ATen's `align_corners`.
        back: Compute the gradient.
    """
    results, elements = (x, out) if back else (out, x)
    n, size = elements.shape[dim], results.shape[dim]
    step = 1 / scale if scale is not None and scale > 0 else n / size
    if align:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    step = rounded(step, x.dtype)
    width = max(step, 1.0)
    # `slack` covers the rounding of i * back - shift in fp32, which grows with the number of results.
    taps, slack = min(2 * math.ceil(2 * width) + 1, n), 0.01 + size * 1e-6
    inverse, shift, most = 0.0, 1.0, size
    if step > 0:
        inverse, shift = rounded(1 / step, x.dtype), (2 * width - 0.5) / step + 0.5 + slack
        most = min(math.floor(4 * width / step + 2 * slack) + 2, size)
    shares = torch.empty((size, taps), dtype=x.dtype, device=x.device)
    ends = torch.empty((size, 2), dtype=torch.int32, device=x.device)
    numbers = tuple([number_argument(v, x.dtype) for v in (step, 2 * width, 1 / width)])
    cubic_shares_kernel[(size,)](shares, ends, plain(n), plain(taps), numbers, BLOCK=16)
    sizes = math.prod(x.shape[:dim]), n, size, math.prod(x.shape[dim + 1 :]), taps, most
    along_axis_kernel[(triton.cdiv(out.numel(), 1024),)](
        x,
        out,
        shares,
        ends,
        tuple([plain(v) for v in sizes]),
        number_argument(inverse, x.dtype),
        number_argument(shift, x.dtype),
        BACK=back,
        BLOCK=1024,
    )


def along_both_axes(x, size, scales, align, back, memory_format):
    """Resample images [N, C, H, W] along W first, then along H."""
    out = torch.empty((*x.shape[:2], *size), dtype=x.dtype, device=x.device, memory_format=memory_format)
    if out.numel():
        dense = x if x.is_contiguous() else fill(torch.empty(x.shape, dtype=x.dtype, device=x.device), x)
        rows = torch.empty((*x.shape[:3], size[1]), dtype=x.dtype, device=x.device)
        along_axis(dense, rows, 3, scales[1], align, back)
        target = out if out.is_contiguous() else torch.empty(out.shape, dtype=x.dtype, device=x.device)
        along_axis(rows, target, 2, scales[0], align, back)
        if target is not out:
            fill(out, target)
    return out


def expect_images(input_size, output_size):
    """Raise RuntimeError, as ATen does, unless both sizes describe images [N, C, H, W] with C, H, W > 0."""
    sizes = (*input_size[1:], *output_size)
    if len(input_size) != 4 or len(output_size) != 2 or min(*input_size, *sizes) < 0 or 0 in sizes:
        raise RuntimeError(f"cannot resample sizes {tuple(input_size)} to {tuple(output_size)}")


def antialias_cubic(x, output_size, scales, align):
    """Return x [N, C, H, W] resampled to output_size, in the memory format that ATen gives it."""
    expect_images(x.shape, output_size)
    sizes = zip(scales, x.shape[2:], output_size, strict=True)
    # ATen ignores the scale of an axis whose size does not change, but only in the forward pass.
    scales = [None if n == size else scale for scale, n, size in sizes]
    return along_both_axes(x, output_size, scales, align, False, suggested_format(x))


def antialias_cubic_backward(grad, output_size, input_size, scales, align):
    """Return the gradient [N, C, H, W] with respect to the input, contiguous.

    Raises RuntimeError if the gradient's shape does not match the sizes.
    """
    expect_images(input_size, output_size)
    if tuple(grad.shape) != (*input_size[:2], *output_size):
        raise RuntimeError(
            f"gradient {tuple(grad.shape)} does not fit {tuple(input_size)} resampled to {tuple(output_size)}"
        )
    return along_both_axes(grad, input_size[2:], scales, align, True, torch.contiguous_format)
