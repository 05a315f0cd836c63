"""Convolution as an implicit matrix product: [positions, channels x taps] @ [channels x taps, channels].

A program instance computes a tile of positions by channels in one group. For each tap and each BLOCK_K
channels, it loads the input element under that tap for each position. A transposed convolution, which is also
the input gradient, loads the position that was multiplied by that tap, if the stride divides it.

The weight gradient is a product over positions for each tap. Many positions are cut into parts, which are added
in a fixed order. In groups with few channels (depthwise) each result element is summed by itself.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.channels_last_convolution import channels_last_convolution, channels_last_gradient
from blocks.depthwise import depthwise_weight_gradient
from blocks.elementwise import elementwise
from blocks.matmul import matmul_tile, tile_product
from blocks.offsets import integer_values, integers, plain_value, stride_arguments, stride_values
from blocks.reduction import reduce
from blocks.taps import axis_integers, convolved_tap, one_axis, spatial_place, wide_offsets
from blocks.types import compute_types
from blocks.window_tiles import tile_grid, tile_place
from blocks.windows import suggested_format

# Largest transposed convolution (in products) that leaves out 0 times an infinite weight. The second sum that this
# needs costs registers: 255 and 240 bytes of spills instead of 214 (fp32, groups with 32 channels, sm_90).
SELECTED = 4194304


@triton.jit
def summed_taps(
    x_ptr,
    weight_ptr,
    axes,
    rows,
    cols,
    sizes,
    x_stride,
    w_stride,
    TRANSPOSED: tl.constexpr,
    ACC: tl.constexpr,
    TILE: tl.constexpr,
    SELECT: tl.constexpr,
):
    """Return the sum over taps and channels for one result tile.

    SELECT leaves out the products of taps that fall outside the input. Otherwise such a product is 0 times the
    weight, which is NaN for an infinite weight. `axes` holds places, window, stride/padding/dilation, and
    extents.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    place, window, how, extents = axes
    M, N, K = sizes
    ks = tl.arange(0, TILE[2]).to(rows.dtype)
    chunks, taps = tl.cdiv(K, TILE[2]), 1
    for k in tl.static_range(len(window)):
        taps = taps * window[k]
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    for step in range(0, taps * chunks):
        first = tl.full([], 0, rows.dtype) + step % chunks * TILE[2]
        offset, valid, tap_offset = convolved_tap(
            place, step // chunks, window, how, extents, x_stride, w_stride[3:], TRANSPOSED
        )
        valid &= rows < M
        left = first + ks < K
        a = tl.load(x_ptr + (offset[:, None] + first * x_stride[1]), mask=valid[:, None] & left[None, :], other=0)
        b_mask = left[:, None] & (cols < N)[None, :]
        b = tl.load(weight_ptr + (tap_offset + first * w_stride[2]), mask=b_mask, other=0)
        if SELECT:
            acc += tl.where(valid[:, None], tile_product(a, b, tl.zeros([BLOCK_M, BLOCK_N], ACC)), 0)
        else:
            acc = tile_product(a, b, acc)
    return acc


@triton.jit
def convolution_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    sizes,
    shape,
    extents,
    window,
    how,
    strides,
    TRANSPOSED: tl.constexpr,
    FALLS: tl.constexpr,
    ACC: tl.constexpr,
    PLAIN: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Compute one result tile, positions by output channels, in one group.

    FALLS follows ATen's transposed convolution, in which a tap outside the input does not meet the weight: 0
    times an infinite weight does not count. A tile with a NaN is summed again with SELECT, so that all other
    tiles do without the select.

    Parameters of the launch:
        x_ptr, weight_ptr: Operands, read.
        bias_ptr: [channels out] or None, read.
        out_ptr: Result, written.
        sizes: Positions, and channels out and in per group.
        shape, extents, window: Spatial sizes for the result, x and the weight.
        how: Stride, padding and dilation per axis.
        strides: Strides for x; the weight (group, channel out, channel in, taps); and the result.
        TRANSPOSED: Compute a transposed convolution.
        ACC: Accumulator type.
        PLAIN: Integers are encoded by `plain`.
        WIDE: Use 64-bit offsets.
        TILE: BLOCK_M, BLOCK_N, BLOCK_K.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    M, N, K = integer_values(sizes, PLAIN)
    shape, extents = integer_values(shape, PLAIN), integer_values(extents, PLAIN)
    window, how = integer_values(window, PLAIN), integer_values(how, PLAIN)
    x_stride, w_stride = stride_values(strides[0], PLAIN), stride_values(strides[1], PLAIN)
    out_stride = stride_values(strides[2], PLAIN)
    down, across = tl.cdiv(M, TILE[0]), tl.cdiv(N, TILE[1])
    group = (tl.program_id(0) // (down * across)).to(INDEX)
    index = tl.program_id(0) % (down * across)
    rows = (index // across).to(INDEX) * TILE[0] + tl.arange(0, TILE[0])
    cols = (index % across).to(INDEX) * TILE[1] + tl.arange(0, TILE[1])
    ks = tl.arange(0, TILE[2]).to(INDEX)
    place = spatial_place(rows, shape)
    x_ptr += (group * K + ks)[None, :] * x_stride[1]
    weight_ptr += group * w_stride[0] + cols[None, :] * w_stride[1] + ks[:, None] * w_stride[2]
    axes, sizes = (place, window, how, extents), (M, N, K)
    acc = summed_taps(
        x_ptr, weight_ptr, axes, rows, cols, sizes, x_stride, w_stride, TRANSPOSED, ACC, TILE, SELECT=False
    )
    if FALLS:  # noqa: SIM102 - known when it is compiled, the other when it runs
        if tl.max((acc != acc).to(tl.int32)) > 0:
            acc = summed_taps(
                x_ptr, weight_ptr, axes, rows, cols, sizes, x_stride, w_stride, TRANSPOSED, ACC, TILE, SELECT=True
            )
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + group * N + cols, mask=cols < N, other=0).to(ACC)[None, :]
    offset = place[0] * out_stride[0]
    for k in tl.static_range(len(shape)):
        offset += place[k + 1] * out_stride[k + 2]
    out_ptr += offset[:, None] + (group * N + cols)[None, :] * out_stride[1]
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def few_channels_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    rows,
    sizes,
    extents,
    how,
    strides,
    CHANNELS: tl.constexpr,
    WINDOW: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    FALLS: tl.constexpr,
    LAST: tl.constexpr,
    FLAT: tl.constexpr,
    ACC: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute the result as `convolution_kernel` does, without tensor cores, for groups with few channels.

    A tile covers the result's two innermost dimensions. CHANNELS holds the channels out and in per group. The
    other parameters are as in `convolution_kernel` and `tile_place`.
    """
    sizes, extents, how = integer_values(sizes, True), integer_values(extents, True), integer_values(how, True)
    x_stride, w_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    place, inside, across, flat = tile_place(sizes, plain_value(rows), LAST, FLAT, WIDE, BLOCK_M, BLOCK_N)
    channel, position = place[1], (place[0],) + place[2:]
    WITHIN: tl.constexpr = CHANNELS[1]
    group = channel // CHANNELS[0]
    x_ptr += group * WITHIN * x_stride[1]
    weight_ptr += group * w_stride[0] + channel % CHANNELS[0] * w_stride[1]
    zero = tl.full([1, 1], 0, flat.dtype)
    taps = 1
    for k in tl.static_range(len(WINDOW)):
        taps = taps * WINDOW[k]
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    for tap in range(0, taps):
        offset, valid, tap_offset = convolved_tap(
            position, zero + tap, WINDOW, how, extents, x_stride, w_stride[3:], TRANSPOSED
        )
        for k in tl.static_range(WITHIN):
            x = tl.load(x_ptr + (offset + (zero + k) * x_stride[1]), mask=inside & across & valid, other=0)
            weight = tl.load(weight_ptr + (tap_offset + (zero + k) * w_stride[2]), mask=channel < sizes[1], other=0)
            product = x.to(ACC) * weight.to(ACC)
            acc += tl.where(valid, product, 0) if FALLS else product
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + channel, mask=channel < sizes[1], other=0).to(ACC)
    tl.store(out_ptr + flat, acc.to(out_ptr.dtype.element_ty), mask=inside & across)


@triton.jit
def weight_gradient_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    sizes,
    shape,
    extents,
    window,
    how,
    strides,
    ACC: tl.constexpr,
    PLAIN: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Compute out[part, channel of a, channel of b in its group, tap] for one tap and one position range.

    Each element is the sum over positions of a times the element of b on which the tap falls.

    Parameters of the launch:
        a_ptr, b_ptr: [batch, channels, ...], read with `strides`.
        out_ptr: Contiguous, written.
        sizes: Channels per group in a and b, positions, positions per part, groups.
        shape, extents, window, how: As in `convolution_kernel`, with a for the result and b for x.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    M, N, count, part, groups = integer_values(sizes, PLAIN)
    shape, extents = integer_values(shape, PLAIN), integer_values(extents, PLAIN)
    window, how = integer_values(window, PLAIN), integer_values(how, PLAIN)
    a_stride, b_stride = stride_values(strides[0], PLAIN), stride_values(strides[1], PLAIN)
    taps = 1
    for k in tl.static_range(len(window)):
        taps = taps * window[k]
    down, across = tl.cdiv(M, TILE[0]), tl.cdiv(N, TILE[1])
    tap = tl.program_id(0) % taps
    index = tl.program_id(0) // taps
    group = (index // (down * across)).to(INDEX)
    index = index % (down * across)
    rows = (index // across).to(INDEX) * TILE[0] + tl.arange(0, TILE[0])
    cols = (index % across).to(INDEX) * TILE[1] + tl.arange(0, TILE[1])
    a_ptr += (group * M + rows)[:, None] * a_stride[1]
    b_ptr += (group * N + cols)[None, :] * b_stride[1]
    begin = tl.program_id(1).to(INDEX) * part
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    for start in range(0, part, TILE[2]):
        i = begin + start + tl.arange(0, TILE[2])
        place = spatial_place(i, shape)
        offset, valid, _ = convolved_tap(place, tap, window, how, extents, b_stride, window, False)
        a_offset = place[0] * a_stride[0]
        for k in tl.static_range(len(shape)):
            a_offset += place[k + 1] * a_stride[k + 2]
        a = tl.load(a_ptr + a_offset[None, :], mask=(rows < M)[:, None] & (i < count)[None, :], other=0)
        valid &= i < count
        b = tl.load(b_ptr + offset[:, None], mask=valid[:, None] & (cols < N)[None, :], other=0)
        acc = tile_product(a, b, acc)
    row = tl.program_id(1).to(INDEX) * groups * M + group * M + rows
    out_ptr += (row[:, None] * N + cols[None, :]) * taps + tap
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (cols < N)[None, :])


def convolved_size(x, weight, stride, padding, dilation, transposed, output_padding, groups):
    """Return the size of the result; raise RuntimeError as ATen does for invalid arguments."""
    axes = x.dim() - 2
    if axes < 1 or axes > 3 or weight.dim() != x.dim() or x.dtype != weight.dtype or groups < 1:
        raise RuntimeError(f"convolution of {x.dtype} {tuple(x.shape)} by {weight.dtype} {tuple(weight.shape)}")
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != channels or weight.shape[0] % groups or 0 in weight.shape[2:] or 0 in weight.shape[:2]:
        raise RuntimeError(f"{x.shape[1]} channels in {groups} groups by a weight {tuple(weight.shape)}")
    if min(*stride, *dilation) < 1 or min(*padding, *output_padding) < 0 or 0 in x.shape[1:]:
        raise RuntimeError(
            f"convolution of {tuple(x.shape)} by stride {stride}, padding {padding}, dilation {dilation}"
        )
    sizes = []
    for n, k, s, p, d, more in zip(
        x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True
    ):
        if transposed and more >= max(s, d):
            raise RuntimeError(f"output padding {more} of stride {s} and dilation {d}")
        size = (n - 1) * s - 2 * p + d * (k - 1) + more + 1 if transposed else (n + 2 * p - d * (k - 1) - 1) // s + 1
        if size < 1 or (not transposed and n + 2 * p < d * (k - 1) + 1):
            raise RuntimeError(f"a window of {k} in {n} elements")
        sizes.append(size)
    return x.shape[0], weight.shape[1] * groups if transposed else weight.shape[0], *sizes


def convolution_result(x, weight, size):
    """Return a new tensor, channels-last if x or weight is."""
    like = weight if suggested_format(x) == torch.contiguous_format else x
    return torch.empty(size, dtype=x.dtype, device=x.device, memory_format=suggested_format(like))


def _tile_of(dtype, batch, M, N, K, most):
    """Return BLOCK_M, BLOCK_N, BLOCK_K and warps; BLOCK_K does not exceed the inner dimension `most` by much."""
    if dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return 16, 16, 16, 4
    half = dtype != torch.float32
    BLOCK_M, BLOCK_N, BLOCK_K, warps = matmul_tile(batch, M, N, K, half, (128, 128) if half else (64, 64))
    return BLOCK_M, BLOCK_N, min(BLOCK_K, max(triton.next_power_of_2(most), 16)), warps


def convolve(x, weight, bias, out, stride, padding, dilation, transposed, groups):
    """Compute a convolution of x, or a transposed one, into `out`.

    Args:
        x: [batch, channels in, ...] with 1 to 3 spatial axes.
        weight: [channels out, channels in / groups, ...], or [channels in, channels out / groups, ...] if
            transposed.
        bias: [channels out] or None.
        out: Result.
        stride: Stride per axis.
        padding: Padding per axis.
        dilation: Dilation per axis.
        transposed: Compute the transposed convolution.
        groups: Group count.
    """
    x, weight, out, stride, padding, dilation = one_axis(x, weight, out, stride, padding, dilation)
    taps, window = math.prod(weight.shape[2:]), weight.shape[2:]
    N, K = out.shape[1] // groups, x.shape[1] // groups
    M = out.numel() // max(out.shape[1], 1)
    if M * N == 0:
        return
    first, second = weight.stride()[:2]
    step = (K * first, second, first) if transposed else (N * first, first, second)
    strides = x.stride(), (*step, *weight.stride()[2:]), out.stride()
    how = axis_integers(stride, padding, dilation)
    mirrored = transposed and max(stride) == 1  # equals a plain convolution with reversed taps
    if mirrored:
        how = axis_integers(stride, [-p for p in padding], [-d for d in dilation])
    if N <= 4 and K <= 4:
        grid, rows, tile_options = tile_grid(out, not out.is_contiguous())
        few_channels_kernel[grid](
            x,
            weight,
            bias,
            out,
            rows,
            integers(out.shape, True),
            integers(x.shape[2:], True),
            integers(how, True),
            (integers(strides[0], True), integers(strides[1], True)),
            CHANNELS=(N, K),
            WINDOW=tuple(window),
            TRANSPOSED=transposed and not mirrored,
            FALLS=transposed,
            ACC=compute_types(out.dtype)[1],
            WIDE=wide_offsets((x, weight, out)),
            **tile_options,
        )
        return
    if groups == 1 and channels_last_convolution(x, weight, bias, out, stride, padding, dilation, transposed):
        return
    tile = _tile_of(x.dtype, groups, M, N, K * taps, K)
    PLAIN = max(x.numel(), weight.numel(), out.numel()) < 65536
    convolution_kernel[(triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]) * groups,)](
        x,
        weight,
        bias,
        out,
        integers((M, N, K), PLAIN),
        integers(out.shape[2:], PLAIN),
        integers(x.shape[2:], PLAIN),
        integers(window, PLAIN),
        integers(how, PLAIN),
        tuple([stride_arguments(s, PLAIN) for s in strides]),
        TRANSPOSED=transposed and not mirrored,
        FALLS=transposed and M * N * K * taps < SELECTED,
        ACC=compute_types(out.dtype)[1],
        PLAIN=PLAIN,
        WIDE=wide_offsets((x, weight, out)),
        TILE=tile[:3],
        num_warps=tile[3],
    )


def weight_gradient(a, b, weight, stride, padding, dilation, groups, out):
    """Compute the weight gradient into `out`, which has the shape of weight.

    Each position of a is multiplied by the elements of b on which its taps fall.

    Args:
        a: Gradient of the result (or x, if transposed).
        b: x (or the gradient of the result, if transposed).
        weight: Weight, only its shape matters.
        stride: Stride per axis.
        padding: Padding per axis.
        dilation: Dilation per axis.
        groups: Group count.
        out: Result.
    """
    b, weight, a, stride, padding, dilation = one_axis(b, weight, a, stride, padding, dilation)
    out = out.view(weight.shape)
    window = weight.shape[2:]
    taps, M, N = math.prod(window), a.shape[1] // groups, b.shape[1] // groups
    if M <= 4 and N <= 4:
        depthwise_weight_gradient(a, b, weight, stride, padding, dilation, groups, out)
        return
    if groups == 1 and channels_last_gradient(a, b, weight, stride, padding, dilation, out):
        return
    count = a.numel() // max(a.shape[1], 1)
    tile = _tile_of(a.dtype, groups * taps, M, N, count, count)
    tiles = triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]) * groups * taps
    parts = max(min(528 // tiles, count // (8 * tile[2])), 1)
    part = triton.cdiv(triton.cdiv(count, parts), tile[2]) * tile[2]
    parts = triton.cdiv(count, part) if count else 1
    direct = parts == 1 and out.is_contiguous()
    dtype = torch.float64 if a.dtype == torch.float64 else torch.float32
    partial_sums = out if direct else torch.empty((parts, *weight.shape), dtype=dtype, device=a.device)
    PLAIN = max(a.numel(), b.numel(), weight.numel()) < 65536
    weight_gradient_kernel[(tiles, parts)](
        a,
        b,
        partial_sums,
        integers((M, N, count, part, groups), PLAIN),
        integers(a.shape[2:], PLAIN),
        integers(b.shape[2:], PLAIN),
        integers(window, PLAIN),
        integers(axis_integers(stride, padding, dilation), PLAIN),
        (stride_arguments(a.stride(), PLAIN), stride_arguments(b.stride(), PLAIN)),
        ACC=compute_types(dtype)[1],
        PLAIN=PLAIN,
        WIDE=wide_offsets((a, b, partial_sums)),
        TILE=tile[:3],
        num_warps=tile[3],
    )
    if not direct:
        total = reduce("sum", [partial_sums], [0], dtype=dtype) if parts > 1 else partial_sums.select(0, 0)
        elementwise(identity, total, common=dtype, out=out)
