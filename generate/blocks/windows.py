"""Windows: each result element combines an input window's elements, axis by axis.

An axis function is `@triton.jit`: axis(i, t, a, f) takes a result coordinate i, a tap t, and the axis'
integers a and floats f. It returns the input coordinate, a weight or size, and True if the tap exists. In
mode "spread" the weight is a pair: the sum of weights, and a flag. The flag is set if ATen's sum of the
single products with an infinite element is NaN.

Gradients are windows too, over the positions that an element contributed to. They are gathered in a fixed
order.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.limits import INT32_MAX
from blocks.line_copies import copy_lines, fits_lines
from blocks.offsets import integer_values, integers, plain, plain_value, reach
from blocks.types import compute_types, convert, number_argument, number_value
from blocks.window_tiles import SHARED_TAPS, fits_tiles, tile_arguments, tile_kernel, tile_largest_kernel, unrolled

LARGEST_WINDOW_OFFSET = INT32_MAX - 2048  # for int32; 2048 leaves room for the lanes beyond the last result and tap


@triton.jit
def place_of(i, sizes, LAST: tl.constexpr):
    """Return batch, channel and spatial coordinates for flat index i; if LAST, channels vary fastest."""
    if LAST:
        channel = i % sizes[1]
        i = i // sizes[1]
    position_coordinates = ()
    for k in tl.static_range(len(sizes) - 1, 1, -1):
        position_coordinates = (i % sizes[k],) + position_coordinates
        i = i // sizes[k]
    if not LAST:
        channel = i % sizes[1]
        i = i // sizes[1]
    return (i, channel) + position_coordinates


@triton.jit
def window_tap(AXIS: tl.constexpr, position, t, most, strides, numbers, FLOAT: tl.constexpr, MODE: tl.constexpr):
    """Return (input offset, product of weights, True if the tap exists, coordinates) for tap t.

    Taps run through the last axis first.
    """
    position_coordinates, valid, lost = (), t >= 0, t < 0
    offset, weight = tl.zeros_like(t), tl.full([1, 1], 1, tl.int32)
    for k in tl.static_range(len(most) - 1, -1, -1):
        floats = ()
        for j in tl.static_range(len(numbers[k][1])):
            floats = floats + (number_value(numbers[k][1][j], FLOAT),)
        integers_of_axis = integer_values(numbers[k][0], True)
        at, by, exists = AXIS(position[k + 2], t % most[k], integers_of_axis, floats)
        t = t // most[k]
        position_coordinates = (at,) + position_coordinates
        offset += at * strides[k + 2]
        valid &= exists
        if MODE == "spread":
            weight = weight * by[0]
            lost |= by[1]
        elif MODE != "sum":
            weight = weight * by
    if MODE == "spread":
        weight = (weight, lost)
    return offset, weight, valid, position_coordinates


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
    """Compute BLOCK_M results, each from its window in x, BLOCK_K taps at a time.

    Args:
        x_ptr: [batch, channel, ...], read with `strides`.
        chosen_ptr: index in the result's plane per input element, read with `chosen_strides`, or None.
        out_ptr: n results, written densely.
        n: number of results, encoded by `plain`.
        sizes: result shape, encoded by `integers`.
        strides: strides of x, encoded by `integers`.
        chosen_strides: strides for chosen_ptr, encoded by `integers`, or ().
        most: taps along each axis, encoded by `integers`.
        numbers: (integers, floats) per axis for the axis function, encoded.
        AXIS: axis function.
        MODE: as in `windows`.
        LAST: channels are innermost in the result.
        FLOAT: type of the axis function's floats.
        ACC: type to accumulate in.
        WIDE: offsets need int64.
        BLOCK_M: results per program.
        BLOCK_K: lanes that share a result's taps.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    flat = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = plain_value(n)
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    most = integer_values(most, True)
    position = place_of(flat[:, None], sizes, LAST)
    inside = flat[:, None] < n
    x_ptr += position[0] * strides[0] + position[1] * strides[1]
    if chosen_ptr is not None:
        chosen_strides = integer_values(chosen_strides, True)
        chosen_ptr += position[0] * chosen_strides[0] + position[1] * chosen_strides[1]
        plane_index = tl.zeros_like(position[2])
        for k in tl.static_range(len(most)):
            plane_index = plane_index * sizes[k + 2] + position[k + 2]
    lanes = tl.arange(0, BLOCK_K)[None, :].to(INDEX)
    total = 1
    for k in tl.static_range(len(most)):
        total = total * most[k]
    acc = tl.zeros([BLOCK_M, BLOCK_K], ACC)
    for start in range(0, total, BLOCK_K):
        t = start + lanes
        offset, weight, valid, here = window_tap(AXIS, position, t, most, strides, numbers, FLOAT, MODE)
        valid &= inside & (t < total)
        if chosen_ptr is not None:
            where = tl.zeros_like(t)
            for k in tl.static_range(len(most)):
                where += here[k] * chosen_strides[k + 2]
            valid &= tl.load(chosen_ptr + where, mask=valid, other=-1) == plane_index
        x = tl.load(x_ptr + offset, mask=valid, other=0).to(ACC)
        if MODE == "weigh":
            x = tl.where(valid, x * weight.to(ACC), 0)
        elif MODE == "spread":  # x * 0 is NaN for an infinite element, as in ATen's sum of the products
            x = tl.where(valid, x * weight[0].to(ACC) + tl.where(weight[1], x * 0, 0), 0)
        elif MODE == "share":
            size = tl.broadcast_to(weight.to(ACC), [BLOCK_M, BLOCK_K])
            x = x // size if ACC.is_int() else divide(x, size)
            x = tl.where(valid, x, 0)
        acc += x
    out = tl.sum(acc, 1)
    if MODE == "mean":  # the size does not depend on the tap
        _, size, _, _ = window_tap(AXIS, position, lanes * 0, most, strides, numbers, FLOAT, MODE)
        size = tl.max(tl.broadcast_to(size, [BLOCK_M, BLOCK_K]), 1).to(ACC)
        out = out // size if ACC.is_int() else divide(out, size)
    tl.store(out_ptr + flat, convert(out, out_ptr.dtype.element_ty), mask=flat < n)


@triton.jit
def better_of(a, i, b, j):
    """Return the larger value with its index: the first among equals, the last among NaNs."""
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
    """Store each window's largest element and its index in the input plane, which has these extents.

    Args:
        x_ptr: [batch, channel, ...], read with `strides`.
        out_ptr: n largest elements, written densely.
        index_ptr: their indices, int64, written densely.
        n: number of results, encoded by `plain`.
        sizes: result shape, encoded by `integers`.
        strides: strides of x, encoded by `integers`.
        most: taps along each axis, encoded by `integers`.
        numbers: (integers, floats) per axis for the axis function, encoded.
        extents: sizes of the input plane, encoded by `integers`.
        AXIS: axis function.
        LEAST: least value in the dtype.
        LAST: channels are innermost in the result.
        WIDE: offsets need int64.
        BLOCK_M: results per program.
        BLOCK_K: lanes that share a window's taps.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    flat = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = plain_value(n)
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    most, extents = integer_values(most, True), integer_values(extents, True)
    position = place_of(flat[:, None], sizes, LAST)
    inside = flat[:, None] < n
    x_ptr += position[0] * strides[0] + position[1] * strides[1]
    lanes = tl.arange(0, BLOCK_K)[None, :].to(INDEX)
    total = 1
    for k in tl.static_range(len(most)):
        total = total * most[k]
    best = tl.full([BLOCK_M, BLOCK_K], LEAST, x_ptr.dtype.element_ty)
    # the largest int64 loses against each tap's index, so a window of least values has an index, too
    index = tl.full([BLOCK_M, BLOCK_K], 0x7FFFFFFFFFFFFFFF, tl.int64)
    for start in range(0, total, BLOCK_K):
        t = start + lanes
        offset, _, valid, position_coordinates = window_tap(
            AXIS, position, t, most, strides, numbers, tl.float32, "sum"
        )
        valid &= inside & (t < total)
        x = tl.load(x_ptr + offset, mask=valid, other=LEAST)
        candidate = tl.zeros_like(t).to(tl.int64)
        for k in tl.static_range(len(most)):
            candidate = candidate * extents[k] + position_coordinates[k]
        candidate = tl.where(valid, candidate, 0x7FFFFFFFFFFFFFFF)
        best, index = better_of(best, index, x, candidate)
    best, index = tl.reduce((best, index), 1, better_of)
    tl.store(out_ptr + flat, best, mask=flat < n)
    tl.store(index_ptr + flat, index, mask=flat < n)


def for_axes(values, axes):
    """Return one integer per axis; a single integer is repeated, and any other count raises RuntimeError."""
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if len(values) not in (1, axes):
        raise RuntimeError(f"expected 1 or {axes} integers, got {len(values)}")
    return values * axes if len(values) == 1 else values


def batched(t, axes):
    """Return t with a batch dimension before the channels and `axes` axes."""
    return t if t.dim() == axes + 2 else t.unsqueeze(0)


def suggested_format(t):
    """Return the memory format that ATen derives from t's strides: channels-last or contiguous."""
    if t.dim() not in (4, 5) or t.stride(1) == 0 or t.numel() == 0:
        return torch.contiguous_format
    least = 0
    for d in (1, *range(t.dim() - 1, 1, -1), 0):
        if t.stride(d) < least or (d == 0 and least == t.stride(1)):
            return torch.contiguous_format
        least = t.stride(d) * t.shape[d] if t.shape[d] > 1 else t.stride(d)
    return torch.channels_last if t.dim() == 4 else torch.channels_last_3d


def window_result(like, size, dtype=None):
    """Return a new tensor with this size, in another tensor's memory format."""
    return torch.empty(size, dtype=dtype or like.dtype, device=like.device, memory_format=suggested_format(like))


def _window_arguments(x, out, axes, most):
    """Return (channels are innermost, tile, common arguments, offsets are wide) for a launch over `out`."""
    total, n = math.prod(most), out.numel()
    BLOCK_K = 1 if total < SHARED_TAPS else 32 if total < 512 else 256
    BLOCK_M = 512 if BLOCK_K == 1 else 1024 // BLOCK_K
    wide = max(n, reach(x.shape, [x.stride()]), total) > LARGEST_WINDOW_OFFSET
    numbers = tuple([(integers(a, True), tuple(f)) for a, f in axes])
    arguments = integers(out.shape, True), integers(x.stride(), True), integers(most, True), numbers
    return not out.is_contiguous(), (BLOCK_M, BLOCK_K), arguments, wide or _products(axes) > INT32_MAX


def _products(axes):
    """Return an upper bound for the product of two axis integers."""
    return max([max([abs(v) for v in a] + [1]) for a, _ in axes]) ** 2


def windows(axis, mode, x, out, axes, most, chosen=None, float_type=torch.float32):
    """Compute each element in `out` from its window in x, and return `out`.

    Args:
        axis: Axis function; see above.
        mode: "copy" (one tap, which exists), "sum", "weigh" (sum of values times weights), "spread" (the same
            for weights that are sums), "mean" (sum divided by the product of sizes) or "share" (sum of
            values, each divided by its sizes).
        x: Input [batch, channel, ...].
        out: New result [batch, channel, ...], contiguous or channels-last.
        axes: (integers, floats) per axis.
        most: Most taps in a window along each axis.
        chosen: None, or an index in `out`'s plane for each element in x, which then counts for that result
            alone.
        float_type: dtype for the floats.
    """
    if out.numel() == 0:
        return out
    taps = most
    last, tile, (sizes, strides, most, numbers), wide = _window_arguments(x, out, axes, taps)
    numbers = tuple([(a, tuple([number_argument(v, float_type) for v in f])) for a, f in numbers])
    FLOAT, ACC = compute_types(float_type)[1], compute_types(out.dtype)[1]
    wide = wide or (chosen is not None and reach(chosen.shape, [chosen.stride()]) > INT32_MAX)
    chosen_strides = () if chosen is None else integers(chosen.stride(), True)
    element_wise = chosen is not None and math.prod(taps) > 1  # with indices, this is faster element by element
    if mode == "copy" and fits_lines(x, out, last, axes):
        return copy_lines(axis, x, out, last, numbers, FLOAT)
    if not element_wise and fits_tiles(taps, mode == "mean"):
        grid, rows, most, keywords = tile_arguments(out, last, taps, wide)
        arguments = x, chosen, out, rows, sizes, strides, chosen_strides, most, numbers
        tile_kernel[grid](*arguments, AXIS=axis, MODE=mode, SECOND=unrolled(taps), FLOAT=FLOAT, ACC=ACC, **keywords)
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
    """Store each window's largest element in `out` and its index in `indices`; both are new, with one format."""
    if out.numel() == 0:
        return
    last, tile, arguments, wide = _window_arguments(x, out, axes, most)
    least = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    extents = integers(x.shape[2:], True)
    wide = wide or math.prod(x.shape[2:]) > INT32_MAX
    if fits_tiles(most, True):
        grid, rows, most, keywords = tile_arguments(out, last, most, wide)
        tile_operands = x, out, indices, rows, *arguments[:2], most, arguments[3], extents
        tile_largest_kernel[grid](*tile_operands, AXIS=axis, LEAST=least, **keywords)
        return
    largest_kernel[(triton.cdiv(out.numel(), tile[0]),)](
        x,
        out,
        indices,
        plain(out.numel()),
        *arguments,
        extents,
        AXIS=axis,
        LEAST=least,
        LAST=last,
        WIDE=wide,
        BLOCK_M=tile[0],
        BLOCK_K=tile[1],
        num_warps=4,
    )
