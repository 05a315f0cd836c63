"""Windows: each element of a result is made of the elements of a window of the input, axis by axis.

A function of an axis is `@triton.jit`: axis(i, t, a, f) of coordinate i of the result and tap t of the window, by the
axis' integers a and floats f, gives a coordinate in the input, a weight or size, and whether the tap is there. In mode
"spread" a weight is a pair: the sum of weights, and whether they are such that ATen's sum of products of each with an
infinite element is NaN.
Gradients are windows too, of the positions that an element went to: they are read (gathered), in a fixed order.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.line_copies import copy_lines, fits_lines
from blocks.offsets import integer_values, integers, plain, plain_value, reach
from blocks.types import compute_types, convert, number_argument, number_value
from blocks.window_tiles import fits_tiles, tile_arguments, tile_kernel, tile_largest_kernel, unrolled


@triton.jit
def place_of(i, sizes, LAST: tl.constexpr):
    """Batch, channel and spatial coordinates of flat index i, which runs through channels first where LAST."""
    if LAST:
        channel = i % sizes[1]
        i = i // sizes[1]
    found = ()
    for k in tl.static_range(len(sizes) - 1, 1, -1):
        found = (i % sizes[k],) + found
        i = i // sizes[k]
    if not LAST:
        channel = i % sizes[1]
        i = i // sizes[1]
    return (i, channel) + found


@triton.jit
def window_tap(AXIS: tl.constexpr, place, t, most, strides, numbers, FLOAT: tl.constexpr, MODE: tl.constexpr):
    """Offset of tap t in the input, product of weights, whether it is there, and the coordinates; taps run through the
    last axis first."""
    here, valid, lost = (), t >= 0, t < 0
    offset, weight = tl.zeros_like(t), tl.full([1, 1], 1, tl.int32)
    for k in tl.static_range(len(most) - 1, -1, -1):
        floats = ()
        for j in tl.static_range(len(numbers[k][1])):
            floats = floats + (number_value(numbers[k][1][j], FLOAT),)
        integers_of_axis = integer_values(numbers[k][0], True)
        at, by, there = AXIS(place[k + 2], t % most[k], integers_of_axis, floats)
        t = t // most[k]
        here = (at,) + here
        offset += at * strides[k + 2]
        valid &= there
        if MODE == "spread":
            weight = weight * by[0]
            lost |= by[1]
        elif MODE != "sum":
            weight = weight * by
    if MODE == "spread":
        weight = (weight, lost)
    return offset, weight, valid, here


@triton.jit
def window_kernel(
    x_ptr,
    chosen_ptr,
    out_ptr,
    n,
    sizes,
    strides,
    chosen_strides,
    most,
    numbers,
    AXIS: tl.constexpr,
    MODE: tl.constexpr,
    LAST: tl.constexpr,
    FLOAT: tl.constexpr,
    ACC: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    flat = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = plain_value(n)
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    most = integer_values(most, True)
    place = place_of(flat[:, None], sizes, LAST)
    inside = flat[:, None] < n
    x_ptr += place[0] * strides[0] + place[1] * strides[1]
    if chosen_ptr is not None:
        chosen_strides = integer_values(chosen_strides, True)
        chosen_ptr += place[0] * chosen_strides[0] + place[1] * chosen_strides[1]
        own = tl.zeros_like(place[2])
        for k in tl.static_range(len(most)):
            own = own * sizes[k + 2] + place[k + 2]
    lanes = tl.arange(0, BLOCK_K)[None, :].to(INDEX)
    total = 1
    for k in tl.static_range(len(most)):
        total = total * most[k]
    acc = tl.zeros([BLOCK_M, BLOCK_K], ACC)
    for start in range(0, total, BLOCK_K):
        t = start + lanes
        offset, weight, valid, here = window_tap(AXIS, place, t, most, strides, numbers, FLOAT, MODE)
        valid &= inside & (t < total)
        if chosen_ptr is not None:
            where = tl.zeros_like(t)
            for k in tl.static_range(len(most)):
                where += here[k] * chosen_strides[k + 2]
            valid &= tl.load(chosen_ptr + where, mask=valid, other=-1) == own
        x = tl.load(x_ptr + offset, mask=valid, other=0).to(ACC)
        if MODE == "weigh":
            x = tl.where(valid, x * weight.to(ACC), 0)
        elif MODE == "spread":
            x = tl.where(valid, x * weight[0].to(ACC) + tl.where(weight[1], x * 0, 0), 0)
        elif MODE == "share":
            size = tl.broadcast_to(weight.to(ACC), [BLOCK_M, BLOCK_K])
            x = x // size if ACC.is_int() else divide(x, size)
            x = tl.where(valid, x, 0)
        acc += x
    out = tl.sum(acc, 1)
    if MODE == "mean":
        _, size, _, _ = window_tap(AXIS, place, lanes * 0, most, strides, numbers, FLOAT, MODE)
        size = tl.max(tl.broadcast_to(size, [BLOCK_M, BLOCK_K]), 1).to(ACC)
        out = out // size if ACC.is_int() else divide(out, size)
    tl.store(out_ptr + flat, convert(out, out_ptr.dtype.element_ty), mask=flat < n)


@triton.jit
def better_of(a, i, b, j):
    """The larger of two values with its index: of equals the first, of NaNs the last."""
    nan_a, nan_b = a != a, b != b
    keep = tl.where(nan_a | nan_b, nan_a & ((i > j) | (b == b)), (a > b) | ((a == b) & (i < j)))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def largest_kernel(
    x_ptr,
    out_ptr,
    index_ptr,
    n,
    sizes,
    strides,
    most,
    numbers,
    extents,
    AXIS: tl.constexpr,
    LEAST: tl.constexpr,
    LAST: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """The largest of each window and its index in the plane of the input, of these extents."""
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    flat = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = plain_value(n)
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    most, extents = integer_values(most, True), integer_values(extents, True)
    place = place_of(flat[:, None], sizes, LAST)
    inside = flat[:, None] < n
    x_ptr += place[0] * strides[0] + place[1] * strides[1]
    lanes = tl.arange(0, BLOCK_K)[None, :].to(INDEX)
    total = 1
    for k in tl.static_range(len(most)):
        total = total * most[k]
    best = tl.full([BLOCK_M, BLOCK_K], LEAST, x_ptr.dtype.element_ty)
    index = tl.full([BLOCK_M, BLOCK_K], 0x7FFFFFFFFFFFFFFF, tl.int64)
    for start in range(0, total, BLOCK_K):
        t = start + lanes
        offset, _, valid, here = window_tap(AXIS, place, t, most, strides, numbers, tl.float32, "sum")
        valid &= inside & (t < total)
        x = tl.load(x_ptr + offset, mask=valid, other=LEAST)
        own = tl.zeros_like(t).to(tl.int64)
        for k in tl.static_range(len(most)):
            own = own * extents[k] + here[k]
        own = tl.where(valid, own, 0x7FFFFFFFFFFFFFFF)
        best, index = better_of(best, index, x, own)
    best, index = tl.reduce((best, index), 1, better_of)
    tl.store(out_ptr + flat, best, mask=flat < n)
    tl.store(index_ptr + flat, index, mask=flat < n)


def for_axes(values, axes):
    """One integer for each axis."""
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if len(values) not in (1, axes):
        raise RuntimeError(f"{len(values)} integers for {axes} dimensions")
    return values * axes if len(values) == 1 else values


def batched(t, axes):
    """t with a dimension of batches before channels and so many axes."""
    return t if t.dim() == axes + 2 else t.unsqueeze(0)


def suggested_format(t):
    """The memory format that ATen takes from the strides of t: channels-last, or contiguous."""
    if t.dim() not in (4, 5) or t.stride(1) == 0 or t.numel() == 0:
        return torch.contiguous_format
    least = 0
    for d in (1, *range(t.dim() - 1, 1, -1), 0):
        if t.stride(d) < least or (d == 0 and least == t.stride(1)):
            return torch.contiguous_format
        least = t.stride(d) * t.shape[d] if t.shape[d] > 1 else t.stride(d)
    return torch.channels_last if t.dim() == 4 else torch.channels_last_3d


def window_result(like, size, dtype=None):
    """A new tensor of this size in the format of another."""
    return torch.empty(size, dtype=dtype or like.dtype, device=like.device, memory_format=suggested_format(like))


def _window_arguments(x, out, axes, most):
    """How to launch over `out`: whether channels lie last, tile, arguments in common and whether offsets are wide."""
    total, n = math.prod(most), out.numel()
    BLOCK_K = 1 if total < 32 else 32 if total < 512 else 256
    BLOCK_M = 512 if BLOCK_K == 1 else 1024 // BLOCK_K
    wide = max(n, reach(x.shape, [x.stride()]), total) > 2147483647 - 2048
    numbers = tuple([(integers(a, True), tuple(f)) for a, f in axes])
    own = integers(out.shape, True), integers(x.stride(), True), integers(most, True), numbers
    return not out.is_contiguous(), (BLOCK_M, BLOCK_K), own, wide or _products(axes) > 2147483647


def _products(axes):
    """The largest that may come of a product of two integers of an axis."""
    return max([max([abs(v) for v in a] + [1]) for a, _ in axes]) ** 2


def windows(axis, mode, x, out, axes, most, chosen=None, float_type=torch.float32):
    """Each element of `out` of its window in x, both [batch, channel, ...]; `out` is new memory, in either format.

    axes: (integers, floats) of each; most: the most taps of a window along each. mode: copy (of one tap, which is
    there), sum, weigh (sum of values times weights), spread (the same, of weights that are sums), mean (sum by the
    product of sizes), share (sum of values, each by its sizes).
    chosen: an index in the plane of `out` for each element of x, which counts for that element alone.
    """
    if out.numel() == 0:
        return out
    taps = most
    last, tile, (sizes, strides, most, numbers), wide = _window_arguments(x, out, axes, taps)
    numbers = tuple([(a, tuple([number_argument(v, float_type) for v in f])) for a, f in numbers])
    FLOAT, ACC = compute_types(float_type)[1], compute_types(out.dtype)[1]
    wide = wide or (chosen is not None and reach(chosen.shape, [chosen.stride()]) > 2147483647)
    chosen_strides = () if chosen is None else integers(chosen.stride(), True)
    element_wise = chosen is not None and math.prod(taps) > 1  # of an index each: faster element by element
    if mode == "copy" and fits_lines(x, out, last, axes):
        return copy_lines(axis, x, out, last, numbers, FLOAT)
    if not element_wise and fits_tiles(taps, mode == "mean"):
        grid, rows, most, own = tile_arguments(out, last, taps, wide)
        given = x, chosen, out, rows, sizes, strides, chosen_strides, most, numbers
        tile_kernel[grid](*given, AXIS=axis, MODE=mode, SECOND=unrolled(taps), FLOAT=FLOAT, ACC=ACC, **own)
        return out
    window_kernel[(triton.cdiv(out.numel(), tile[0]),)](
        x,
        chosen,
        out,
        plain(out.numel()),
        sizes,
        strides,
        chosen_strides,
        most,
        numbers,
        AXIS=axis,
        MODE=mode,
        LAST=last,
        WIDE=wide,
        BLOCK_M=tile[0],
        BLOCK_K=tile[1],
        FLOAT=FLOAT,
        ACC=ACC,
        num_warps=4,
    )
    return out


def largest_of_windows(axis, x, out, indices, axes, most):
    """The largest of each window in `out`, its index in `indices`, both new and in one format."""
    if out.numel() == 0:
        return
    last, tile, own, wide = _window_arguments(x, out, axes, most)
    least = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    extents = integers(x.shape[2:], True)
    wide = wide or math.prod(x.shape[2:]) > 2147483647
    if fits_tiles(most, True):
        grid, rows, most, more = tile_arguments(out, last, most, wide)
        given = x, out, indices, rows, *own[:2], most, own[3], extents
        tile_largest_kernel[grid](*given, AXIS=axis, LEAST=least, **more)
        return
    largest_kernel[(triton.cdiv(out.numel(), tile[0]),)](
        x,
        out,
        indices,
        plain(out.numel()),
        *own,
        extents,
        AXIS=axis,
        LEAST=least,
        LAST=last,
        WIDE=wide,
        BLOCK_M=tile[0],
        BLOCK_K=tile[1],
        num_warps=4,
    )
