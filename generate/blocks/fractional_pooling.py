"""Fractional max pooling (arXiv:1412.6071): windows of equal size with starts from a random sample per plane.

Let u be the sample, n the input size, k the window size and a = (n - k) / (count - 1). Window o begins at
int((o + u) a) - int(u a), and the last one at n - k. Each step is rounded to the dtype of the sample, as in
ATen.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide, identity
from blocks.creation import fill
from blocks.elementwise import elementwise
from blocks.indexing_along import apply_along
from blocks.limits import INT32_MAX
from blocks.offsets import integer_values, integers, plain, plain_value, reach
from blocks.types import compute_types, convert
from blocks.windows import batched, better_of, place_of

__all__ = ["fractional_backward", "fractional_largest"]


@triton.jit
def whole_part(x):
    """Return x truncated toward zero to 32 bits, and the minimum int32 if it is out of range."""
    return tl.where(tl.abs(x) < 2147483648.0, x, -2147483648.0).to(tl.int64)


@triton.jit
def fractional_start(o, u, count, last, DTYPE: tl.constexpr, ACC: tl.constexpr):
    """Return the first element of window o among `count` windows; the last one begins at `last`."""
    steps = tl.maximum(count - 1, 1) + tl.zeros_like(o)
    a = divide(convert((last + tl.zeros_like(o)).to(ACC), DTYPE).to(ACC), convert(steps.to(ACC), DTYPE).to(ACC))
    a = convert(a, DTYPE).to(ACC)
    at = convert(convert(o.to(ACC), DTYPE).to(ACC) + u, DTYPE).to(ACC)
    start = whole_part(convert(at * a, DTYPE).to(ACC)) - whole_part(convert(u * a, DTYPE).to(ACC))
    return tl.where(o == count - 1, last, start)


@triton.jit
def fractional_kernel(
    x_ptr,
    samples_ptr,
    out_ptr,
    index_ptr,
    n,
    sizes,
    strides,
    samples_strides,
    extents,
    most,
    lasts,
    REVERSED: tl.constexpr,
    ACC: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Compute each window's maximum and its flat index in the input plane.

    Args:
        x_ptr: [batch, channel, *extents], read with `strides`.
        samples_ptr: [batch, channel, axes], read with `samples_strides`.
        out_ptr: [batch, channel, *windows], contiguous, written: maxima.
        index_ptr: [batch, channel, *windows] int64, contiguous, written: flat indices in the input plane.
        n: Total window count, encoded by `plain`.
        sizes: Batch, channel, and windows along each axis, encoded by `plain`.
        strides: Strides of x, in elements, encoded by `plain`.
        samples_strides: Strides of the samples, in elements, encoded by `plain`.
        extents: Input size along each axis, encoded by `plain`.
        most: Window size along each axis, encoded by `plain`.
        lasts: Start of the last window along each axis, encoded by `plain`.
        REVERSED: True if the samples begin with the last axis.
        ACC: Type to compute in.
        WIDE: True to use 64-bit offsets.
        BLOCK_M: Windows per program instance.
        BLOCK_K: Elements per window and step.
    """
    flat = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = plain_value(n)
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    samples_strides, lasts = integer_values(samples_strides, True), integer_values(lasts, True)
    extents, most = integer_values(extents, True), integer_values(most, True)
    point = place_of(flat[:, None], sizes, False)
    inside = flat[:, None] < n
    x_ptr += point[0] * strides[0] + point[1] * strides[1]
    samples_ptr += point[0] * samples_strides[0] + point[1] * samples_strides[1]
    starts, first, total = (), tl.zeros_like(point[0]).to(tl.int64), 1
    for k in tl.static_range(len(most)):
        sample_axis = len(most) - 1 - k if REVERSED else k
        u = tl.load(samples_ptr + sample_axis * samples_strides[2], mask=inside, other=0)
        start = fractional_start(point[k + 2], u.to(ACC), sizes[k + 2], lasts[k], u.dtype, ACC)
        starts = starts + (start,)
        first = first * extents[k] + start
        total = total * most[k]
    best = tl.full([BLOCK_M, BLOCK_K], float("-inf"), x_ptr.dtype.element_ty)
    index = tl.zeros([BLOCK_M, BLOCK_K], tl.int64) + first
    for begin in range(0, total, BLOCK_K):
        t = begin + tl.arange(0, BLOCK_K)[None, :].to(first.dtype)
        valid = inside & (t < total)
        offset, plane_index, step = tl.zeros_like(t), tl.zeros_like(t), 1
        for k in tl.static_range(len(most) - 1, -1, -1):
            at = starts[k] + t % most[k]
            t = t // most[k]
            valid &= (at >= 0) & (at < extents[k])
            offset += at * strides[k + 2]
            plane_index += at * step
            step = step * extents[k]
        # Invalid lanes get the largest index, so that they lose against an element that is -inf.
        x = tl.load(x_ptr + offset, mask=valid, other=float("-inf"))
        best, index = better_of(best, index, x, tl.where(valid, plane_index, 0x7FFFFFFFFFFFFFFF))
    best, index = tl.reduce((best, index), 1, better_of)
    tl.store(out_ptr + flat, best, mask=flat < n)
    tl.store(index_ptr + flat, index, mask=flat < n)


def fractional_largest(x, axes, kernel_size, output_size, samples):
    """Return each window's maximum and its index in the input plane; raise RuntimeError as ATen does."""
    if x.dim() not in (axes + 1, axes + 2) or 0 in x.shape[x.dim() - axes - 1 :] or min(output_size) < 0:
        raise RuntimeError(f"cannot pool {tuple(x.shape)} to {output_size}")
    shape, extents = (*x.shape[:-axes], *output_size), x.shape[x.dim() - axes :]
    if len(kernel_size) != axes or len(output_size) != axes:
        raise RuntimeError(
            f"expected {axes} integers in each of kernel_size and output_size, got {kernel_size} and {output_size}"
        )
    if any([m + k - 1 > n for n, m, k in zip(extents, output_size, kernel_size, strict=True)]):
        raise RuntimeError(f"{output_size} windows {kernel_size} do not fit in {tuple(extents)}")
    batch = batched(x, axes)
    if samples.dtype != x.dtype or samples.dim() != 3 or samples.shape[0] < batch.shape[0]:
        raise RuntimeError(
            f"samples {samples.dtype} {tuple(samples.shape)} do not fit input {x.dtype} {tuple(x.shape)}"
        )
    if samples.shape[1] != batch.shape[1] or samples.shape[2] != axes:
        raise RuntimeError(
            f"samples {tuple(samples.shape)} do not fit input {tuple(x.shape)} with {axes} pooled dimensions"
        )
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    indices = torch.empty(shape, dtype=torch.int64, device=x.device)
    most = [max(k, 0) for k in kernel_size]
    total, n = math.prod(most), out.numel()
    # A lane walks through a small window alone; lanes share a larger one and reduce at the end.
    BLOCK_K = 1 if total < 32 else 32 if total < 512 else 256
    BLOCK_M = 512 if BLOCK_K == 1 else 1024 // BLOCK_K
    if n:
        reached = reach(batch.shape, [batch.stride()]), reach(samples.shape, [samples.stride()])
        fractional_kernel[(triton.cdiv(n, BLOCK_M),)](
            batch,
            samples,
            out,
            indices,
            plain(n),
            integers(batched(out, axes).shape, True),
            integers(batch.stride(), True),
            integers(samples.stride(), True),
            integers(extents, True),
            integers(most, True),
            integers([m - k for m, k in zip(extents, kernel_size, strict=True)], True),
            REVERSED=axes == 2,
            ACC=compute_types(x.dtype)[1],
            WIDE=max(n, total, *reached) > INT32_MAX - 1024,  # lanes count on beyond the last element
            BLOCK_M=BLOCK_M,
            BLOCK_K=BLOCK_K,
            num_warps=4,
        )
    return out, indices


def fractional_backward(grad, x, axes, output_size, indices):
    """Return the input gradient: each gradient is added at its index by atomics, in fp32 for half precision.

    Raises RuntimeError if shapes or dtypes do not fit.
    """
    shape = (*x.shape[:-axes], *output_size)
    if x.dim() not in (axes + 1, axes + 2) or tuple(grad.shape) != shape or tuple(indices.shape) != shape:
        raise RuntimeError(
            f"need gradient and indices {shape} for {list(x.shape)}, got {tuple(grad.shape)}, {tuple(indices.shape)}"
        )
    if grad.dtype != x.dtype or indices.dtype != torch.int64:
        raise RuntimeError(f"expected a {x.dtype} gradient and int64 indices, got {grad.dtype} and {indices.dtype}")
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    sums = torch.empty(x.shape, dtype=wide, device=x.device)
    fill(sums, 0)
    planes = sums.view(*x.shape[:-axes], *[1] * (axes - 1), math.prod(x.shape[x.dim() - axes :]))
    apply_along("add", planes.expand(*shape[:-1], planes.shape[-1]), -1, indices, grad)
    return sums if wide == x.dtype else elementwise(identity, sums, common=wide, dtype=x.dtype)
