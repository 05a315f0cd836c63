"""aten::_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None,
    Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor

Each element finds its segment by binary search.

- "max" and "min": the gradient goes to the extreme elements and to NaN elements. If it is positive, they
  share it equally, as in ATen.
- "prod": the gradient is multiplied by the product over the other elements. That is result / element. If the
  element is 0 or NaN, it is the product over all elements that are neither, adjusted for other zeros and
  NaNs.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.offsets import plain, plain_value, strided, walk
from blocks.segments import over_segments, reduction_of, segment_axis, segment_bounds, segment_limits
from blocks.types import compute_types, identical_dtypes

OVERLOADS = ("aten::_segment_reduce_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def extreme(x, result):
    return ((x == result) | (x != x)).to(x.dtype)


@triton.jit
def divisor(x, beside):
    return tl.where((x == 0) | (x != x), 1, x)


@triton.jit
def is_zero(x, beside):
    return (x == 0).to(x.dtype)


@triton.jit
def is_nan(x, beside):
    return (x != x).to(x.dtype)


@triton.jit
def segment_of(bounds_ptr, first, segments, i, mask, depth):
    """Return how many bounds are <= i, among segments + 1 bounds from `first` on, by binary search."""
    low, high = tl.zeros_like(i), tl.zeros_like(i) + segments + 1
    for _ in range(depth):
        middle = (low + high) // 2
        going = mask & (low < high)
        before = tl.load(bounds_ptr + first + middle, mask=going, other=0) <= i
        low = tl.where(going & before, middle + 1, low)
        high = tl.where(going & ~before, middle, high)
    return low


@triton.jit
def segment_gradient_kernel(
    grad_ptr,
    result_ptr,
    x_ptr,
    bounds_ptr,
    statistics,
    out_ptr,
    n,
    segments,
    size,
    width,
    depth,
    shape,
    stride,
    KIND: tl.constexpr,
    OPMATH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradient for BLOCK elements.

    Integer arguments are encoded by `plain`.

    Args:
        grad_ptr: [rows, segments, width], contiguous, read.
        result_ptr: [rows, segments, width], contiguous, read.
        x_ptr: [rows, size, width], read.
        bounds_ptr: [rows, segments + 1], read.
        statistics: Tuple of [rows, segments, width], read. For "max" and "min": (number of elements that share the
            gradient). For "prod": (product without zeros and NaNs, number of zeros, number of NaNs). Else ().
        out_ptr: [rows, size, width], contiguous, written.
        n: Number of elements in the output.
        segments: Number of segments per row.
        size: Number of elements per row along the reduced dimension.
        width: Number of elements per position along the reduced dimension.
        depth: Binary search steps.
        shape: Sizes of x's dimensions, from `walk`.
        stride: Tuple with x's strides in these dimensions, from `walk`.
        KIND: "max", "mean", "min", "prod" or "sum".
        OPMATH: Triton type in which the gradient is computed.
        BLOCK: Elements per program instance.
    """
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = e < plain_value(n)
    segments, size, width = plain_value(segments), plain_value(size), plain_value(width)
    i, row = e // width % size, e // width // size
    after = segment_of(bounds_ptr, row * (segments + 1), segments, i, mask, plain_value(depth))
    inside = mask & (after > 0) & (after <= segments)
    segment = row * segments + after - 1
    cell = segment * width + e % width
    grad = tl.load(grad_ptr + cell, mask=inside, other=0).to(OPMATH)
    if KIND == "mean":
        begin, end = segment_limits(bounds_ptr, segment, segments, size, inside)
        grad = grad / tl.maximum(end - begin, 1).to(OPMATH)
    elif KIND != "sum":
        x = tl.load(x_ptr + strided(e, shape, stride[0], False, True), mask=inside, other=1).to(OPMATH)
        result = tl.load(result_ptr + cell, mask=inside, other=1).to(OPMATH)
        if KIND == "prod":
            nan = x != x
            zeros = tl.load(statistics[1] + cell, mask=inside, other=0) - (x == 0).to(OPMATH)
            nans = tl.load(statistics[2] + cell, mask=inside, other=0) - nan.to(OPMATH)
            # The product over the other elements: infinity * 0 has to stay NaN, so 0 is multiplied and not assigned.
            rest = tl.load(statistics[0] + cell, mask=inside, other=0)
            rest = tl.where(nans > 0, float("nan"), tl.where(zeros > 0, rest * 0, rest))
            odd = nan | (x == 0)
            grad = tl.where(odd, grad * rest, grad * result / tl.where(odd, 1, x))
        else:
            share = grad / tl.maximum(tl.load(statistics[0] + cell, mask=inside, other=1), 1)
            grad = tl.where((x == result) | (x != x), tl.where(grad > 0, share, grad), 0)
    tl.store(out_ptr + e, grad.to(out_ptr.dtype.element_ty), mask=mask)


def gathered(kind, output, data, axis, bounds, initial):
    """Return the segment statistics that this reduction's gradient needs, in fp32 (fp64 for fp64)."""
    dtype = torch.promote_types(data.dtype, torch.float32)
    if kind == "prod":
        product = over_segments("prod", data, axis, bounds, dtype, initial, divisor)
        return product, *[over_segments("sum", data, axis, bounds, dtype, map=map) for map in (is_zero, is_nan)]
    if kind in ("max", "min"):
        return (over_segments("sum", data, axis, bounds, dtype, map=extreme, beside=output),)
    return ()


def wrapper(grad, output, data, reduce, *, lengths=None, offsets=None, axis=0, initial=None):
    identical_dtypes(data, grad, output)
    kind = reduction_of(reduce)
    axis = segment_axis(data, lengths, offsets, axis)
    bounds = segment_bounds(lengths, offsets)
    segments = bounds.shape[-1] - 1
    if not grad.shape == output.shape == (*data.shape[:axis], segments, *data.shape[axis + 1 :]):
        raise RuntimeError(f"gradient {tuple(grad.shape)} does not fit {segments} segments in {tuple(data.shape)}")
    grad, output = [t if t.is_contiguous() else copied(t) for t in (grad, output)]
    out = torch.empty(data.shape, dtype=data.dtype, device=data.device)
    n = out.numel()
    if n:
        segment_gradient_kernel[(triton.cdiv(n, 1024),)](
            grad,
            output,
            data,
            bounds,
            gathered(kind, output, data, axis, bounds, initial),
            out,
            plain(n),
            plain(segments),
            plain(data.shape[axis]),
            plain(math.prod(data.shape[axis + 1 :])),
            plain(math.frexp(segments + 1)[1]),
            *walk([data], range(data.dim()), True),
            KIND=kind,
            OPMATH=compute_types(data.dtype)[1],
            BLOCK=1024,
        )
    return out
