"""Convolution as an implicit matrix product: [positions, channels x taps] @ [channels x taps, channels].

A program instance computes a tile of positions by channels in one group. For each tap and each BLOCK_K
channels, it loads the input element under that tap for each position. A transposed convolution, which is also
the input gradient, loads the position that was multiplied by that tap, if the stride divides it.

Groups with few channels are computed without tensor cores. The weight gradient is in `blocks.weight_gradients`.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.channels_last_convolution import channels_last_convolution
from blocks.limits import SMALL_TENSOR
from blocks.matmul import matmul_tile
from blocks.offsets import integer_values, integers, plain_value, stride_arguments, stride_values
from blocks.product_tiles import tile_product
from blocks.taps import axis_integers, convolved_tap, one_axis, spatial_place, wide_offsets
from blocks.types import compute_types
from blocks.window_tiles import tile_grid, tile_place
from blocks.windows import suggested_format

__all__ = ["convolution_result", "convolve", "convolved_size"]

# Largest transposed convolution (in products) that leaves out 0 times an infinite weight. The second sum that this
# needs costs registers: 255 and 240 bytes of spills instead of 214 (fp32, groups with 32 channels, sm_90).
SELECTED = 4194304

# Channels per group, in and out, up to which a group is computed without tensor cores. Their tiles are at least
# 16 wide and would be mostly masked.
FEW_CHANNELS = 4


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
    weight, which is NaN for an infinite weight. `axes` holds positions, window, stride/padding/dilation, and
    extents.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    positions, window, how, extents = axes
    M, N, K = sizes
    ks = tl.arange(0, TILE[2]).to(rows.dtype)
    chunks, taps = tl.cdiv(K, TILE[2]), 1
    for k in tl.static_range(len(window)):
        taps = taps * window[k]
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    for step in range(0, taps * chunks):
        first = tl.full([], 0, rows.dtype) + step % chunks * TILE[2]
        offset, valid, tap_offset = convolved_tap(
            positions, step // chunks, window, how, extents, x_stride, w_stride[3:], TRANSPOSED
        )
        valid &= rows < M
        left = first + ks < K
        a = tl.load(x_ptr + (offset[:, None] + first * x_stride[1]), mask=valid[:, None] & left[None, :], other=0)
        b_mask = left[:, None] & (cols < N)[None, :]
        b = tl.load(weight_ptr + (tap_offset + first * w_stride[2]), mask=b_mask, other=0)
        if SELECT:
            # each step by itself, because its NaN must not reach the sum
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

    Args:
        x_ptr: [batch, channels in, *extents], read.
        weight_ptr: Weight with the strides below, read.
        bias_ptr: [channels out] or None, read.
        out_ptr: [batch, channels out, *shape], written.
        sizes: Positions, and channels out and in per group.
        shape: Spatial sizes of the result.
        extents: Spatial sizes of x.
        window: Taps per axis.
        how: Stride, padding and dilation per axis.
        strides: Strides of x; of the weight (group, channel out, channel in, taps); and of the result.
        TRANSPOSED: Compute a transposed convolution.
        FALLS: Leave out 0 times an infinite weight, as above.
        ACC: Accumulator type.
        PLAIN: Integers are encoded by `plain`, and strides for `stride_values`.
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
    positions = spatial_place(rows, shape)
    x_ptr += (group * K + ks)[None, :] * x_stride[1]
    weight_ptr += group * w_stride[0] + cols[None, :] * w_stride[1] + ks[:, None] * w_stride[2]
    axes, sizes = (positions, window, how, extents), (M, N, K)
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
    offset = positions[0] * out_stride[0]
    for k in tl.static_range(len(shape)):
        offset += positions[k + 1] * out_stride[k + 2]
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

    A tile covers the result's two innermost dimensions.

    Args:
        x_ptr: [batch, channels in, *extents], read.
        weight_ptr: Weight with the strides below, read.
        bias_ptr: [channels out] or None, read.
        out_ptr: Result with these sizes, dense, written.
        rows: Result rows, for FLAT tiles, encoded by `plain`.
        sizes: Batch, channels out, and spatial sizes of the result, encoded by `plain`.
        extents: Spatial sizes of x, encoded by `plain`.
        how: Stride, padding and dilation per axis, encoded by `plain`.
        strides: Strides of x, and of the weight (group, channel out, channel in, taps), encoded by `plain`.
        CHANNELS: Channels out and in per group.
        WINDOW: Taps per axis.
        TRANSPOSED: Compute a transposed convolution.
        FALLS: Leave out 0 times an infinite weight (see `convolution_kernel`).
        LAST: Channels are the result's innermost dimension.
        FLAT: Tile rows run through all dimensions but the innermost (see `tile_place`).
        ACC: Accumulator type.
        WIDE: Use 64-bit offsets.
        BLOCK_M: Rows per tile.
        BLOCK_N: Columns per tile.
    """
    sizes, extents, how = integer_values(sizes, True), integer_values(extents, True), integer_values(how, True)
    x_stride, w_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    tile_coordinates, inside, across, flat = tile_place(sizes, plain_value(rows), LAST, FLAT, WIDE, BLOCK_M, BLOCK_N)
    channel, position = tile_coordinates[1], (tile_coordinates[0],) + tile_coordinates[2:]
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


def convolved_size(x, weight, stride, padding, dilation, transposed, output_padding, groups):
    """Return the size of the result; raise RuntimeError as ATen does for invalid arguments."""
    axes = x.dim() - 2
    if axes < 1 or axes > 3 or weight.dim() != x.dim() or x.dtype != weight.dtype or groups < 1:
        raise RuntimeError(
            f"cannot convolve {x.dtype} {tuple(x.shape)} with weight {weight.dtype} {tuple(weight.shape)}"
        )
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != channels or weight.shape[0] % groups or 0 in weight.shape[2:] or 0 in weight.shape[:2]:
        raise RuntimeError(f"{x.shape[1]} channels in {groups} groups do not fit weight {tuple(weight.shape)}")
    if min(*stride, *dilation) < 1 or min(*padding, *output_padding) < 0 or 0 in x.shape[1:]:
        raise RuntimeError(
            f"invalid stride {stride}, padding {padding}, {output_padding} or dilation {dilation} for {tuple(x.shape)}"
        )
    sizes = []
    for n, k, s, p, d, more in zip(
        x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True
    ):
        if transposed and more >= max(s, d):
            raise RuntimeError(f"output padding {more} must be smaller than stride {s} or dilation {d}")
        size = (n - 1) * s - 2 * p + d * (k - 1) + more + 1 if transposed else (n + 2 * p - d * (k - 1) - 1) // s + 1
        if size < 1 or (not transposed and n + 2 * p < d * (k - 1) + 1):
            raise RuntimeError(f"no result for {n} elements, window {k}, stride {s}, padding {p} and dilation {d}")
        sizes.append(size)
    return x.shape[0], weight.shape[1] * groups if transposed else weight.shape[0], *sizes


def convolution_result(x, weight, size):
    """Return a new tensor, channels-last if x or weight is."""
    like = weight if suggested_format(x) == torch.contiguous_format else x
    return torch.empty(size, dtype=x.dtype, device=x.device, memory_format=suggested_format(like))


def convolution_tile(dtype, batch, M, N, K, most):
    """Return BLOCK_M, BLOCK_N, BLOCK_K and warps; BLOCK_K does not exceed the inner dimension `most` by much."""
    if dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return 16, 16, 16, 4  # multiplied elementwise: a product has 16 * 16 * 16 elements
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
    if N <= FEW_CHANNELS and K <= FEW_CHANNELS:
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
    tile = convolution_tile(x.dtype, groups, M, N, K * taps, K)
    PLAIN = max(x.numel(), weight.numel(), out.numel()) < SMALL_TENSOR
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
