"""Resampling by a cubic (A = -0.5; Keys 1981), four elements of the result wide, or of the input if these are wider.

Along one axis after the other. Of an axis the weights are made first: of each result which elements are under the
cubic, and their shares, which add up to 1. Gradients are gathered of those results that an element went to.
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
    """At distance x >= 0 from the middle."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return tl.where(x < 1, near, tl.where(x < 2, far, 0.0))


@triton.jit
def cubic_shares_kernel(shares_ptr, ends_ptr, n, taps, numbers, BLOCK: tl.constexpr):
    """A row of shares [size, taps], and of ends [size, 2]: the first element under the cubic, and the first behind it.

    numbers: elements of the input for one of the result, half the cubic's width, and the inverse of half of that.
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
    total = tl.where(total == 0, 1, total)
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
    """out [outer, results, inner] from x [outer, elements, inner], or, BACK, out [outer, elements, inner] from their
    gradients. sizes: outer, elements, results, inner, taps, and the most results that an element went to."""
    TYPE: tl.constexpr = shares_ptr.dtype.element_ty
    elements, results, inner = plain_value(sizes[1]), plain_value(sizes[2]), plain_value(sizes[3])
    taps, most = plain_value(sizes[4]), plain_value(sizes[5])
    length, other = (elements, results) if BACK else (results, elements)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(sizes[0]).to(tl.int64) * length * inner
    here = (i // inner % length).to(tl.int32)
    x_ptr += i // inner // length * other * inner + i % inner
    acc = tl.zeros([BLOCK], TYPE)
    if BACK:
        first = tl.maximum(tl.ceil(here.to(TYPE) * number_value(back, TYPE) - number_value(shift, TYPE)), 0)
        for t in range(0, most):
            at = first.to(tl.int32) + t
            inside = mask & (at < results)
            low = tl.load(ends_ptr + at * 2, mask=inside, other=0)
            inside = inside & (here >= low) & (here < tl.load(ends_ptr + at * 2 + 1, mask=inside, other=0))
            share = tl.load(shares_ptr + at.to(tl.int64) * taps + here - low, mask=inside, other=0)
            acc += share * tl.load(x_ptr + at.to(tl.int64) * inner, mask=inside, other=0)
    else:
        low = tl.load(ends_ptr + here * 2, mask=mask, other=0)
        high = tl.load(ends_ptr + here * 2 + 1, mask=mask, other=0)
        for t in range(0, taps):
            inside = mask & (low + t < high)
            share = tl.load(shares_ptr + here.to(tl.int64) * taps + t, mask=inside, other=0)
            acc += share * tl.load(x_ptr + (low + t).to(tl.int64) * inner, mask=inside, other=0)
    tl.store(out_ptr + i, acc, mask=mask)


def along_axis(x, out, dim, scale, align, back):
    """Resamples x along dim into out, both contiguous; back: gradients of out's elements from those of results."""
    results, elements = (x, out) if back else (out, x)
    n, size = elements.shape[dim], results.shape[dim]
    step = 1 / scale if scale is not None and scale > 0 else n / size
    if align:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    step = rounded(step, x.dtype)
    width = max(step, 1.0)
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
    """Of images [N, C, H, W], columns first."""
    out = torch.empty((*x.shape[:2], *size), dtype=x.dtype, device=x.device, memory_format=memory_format)
    if out.numel():
        dense = x if x.is_contiguous() else fill(torch.empty(x.shape, dtype=x.dtype, device=x.device), x)
        rows = torch.empty((*x.shape[:3], size[1]), dtype=x.dtype, device=x.device)
        along_axis(dense, rows, 3, scales[1], align, back)
        into = out if out.is_contiguous() else torch.empty(out.shape, dtype=x.dtype, device=x.device)
        along_axis(rows, into, 2, scales[0], align, back)
        if into is not out:
            fill(out, into)
    return out


def expect_images(input_size, output_size):
    """Raises RuntimeError as ATen."""
    sizes = (*input_size[1:], *output_size)
    if len(input_size) != 4 or len(output_size) != 2 or min(*input_size, *sizes) < 0 or 0 in sizes:
        raise RuntimeError(f"resampling of {tuple(input_size)} to {tuple(output_size)}")


def antialias_cubic(x, output_size, scales, align):
    expect_images(x.shape, output_size)
    sizes = zip(scales, x.shape[2:], output_size, strict=True)
    scales = [None if n == size else scale for scale, n, size in sizes]  # as ATen, but not of gradients
    return along_both_axes(x, output_size, scales, align, False, suggested_format(x))


def antialias_cubic_backward(grad, output_size, input_size, scales, align):
    expect_images(input_size, output_size)
    if tuple(grad.shape) != (*input_size[:2], *output_size):
        raise RuntimeError(f"gradient {tuple(grad.shape)} of {tuple(input_size)} resampled to {tuple(output_size)}")
    return along_both_axes(grad, input_size[2:], scales, align, True, torch.contiguous_format)
