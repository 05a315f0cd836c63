"""Weight gradient of a convolution: for each tap, a matrix product over positions.

Used by the backward kernel of convolution. Many positions are cut into parts, which are added in a fixed order. In
groups with few channels (depthwise) each result element is summed by itself (`blocks.depthwise`). Large gradients
of a single group take channels-last copies of their operands (`blocks.channels_last_convolution`).
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.channels_last_convolution import channels_last_gradient
from blocks.convolution import FEW_CHANNELS, convolution_tile
from blocks.depthwise import GRADIENT_PART_STEPS, depthwise_weight_gradient
from blocks.elementwise import elementwise
from blocks.limits import PROCESSORS, SMALL_TENSOR
from blocks.offsets import integer_values, integers, stride_arguments, stride_values
from blocks.product_tiles import tile_product
from blocks.reduction import reduce
from blocks.taps import axis_integers, convolved_tap, one_axis, spatial_place, wide_offsets
from blocks.types import compute_types

__all__ = ["weight_gradient"]


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

    Args:
        a_ptr: [batch, channels of a, *shape], read with `strides`.
        b_ptr: [batch, channels of b, *extents], read with `strides`.
        out_ptr: [parts, channels of a, channels of b per group, *window], contiguous, written.
        sizes: Channels per group in a and b, positions, positions per part, groups.
        shape: Spatial sizes of a.
        extents: Spatial sizes of b.
        window: Taps per axis.
        how: Stride, padding and dilation per axis.
        strides: Strides of a and of b.
        ACC: Accumulator type.
        PLAIN: Integers are encoded by `plain`, and strides for `stride_values`.
        WIDE: Use 64-bit offsets.
        TILE: BLOCK_M, BLOCK_N, BLOCK_K (channels of a, channels of b, positions per step).
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
        positions = spatial_place(i, shape)
        offset, valid, _ = convolved_tap(positions, tap, window, how, extents, b_stride, window, False)
        a_offset = positions[0] * a_stride[0]
        for k in tl.static_range(len(shape)):
            a_offset += positions[k + 1] * a_stride[k + 2]
        a = tl.load(a_ptr + a_offset[None, :], mask=(rows < M)[:, None] & (i < count)[None, :], other=0)
        valid &= i < count
        b = tl.load(b_ptr + offset[:, None], mask=valid[:, None] & (cols < N)[None, :], other=0)
        acc = tile_product(a, b, acc)
    # A part has its own slice of `out`, so that no two program instances store the same element.
    row = tl.program_id(1).to(INDEX) * groups * M + group * M + rows
    out_ptr += (row[:, None] * N + cols[None, :]) * taps + tap
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (cols < N)[None, :])


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
    if M <= FEW_CHANNELS and N <= FEW_CHANNELS:
        depthwise_weight_gradient(a, b, weight, stride, padding, dilation, groups, out)
        return
    if groups == 1 and channels_last_gradient(a, b, weight, stride, padding, dilation, out):
        return
    count = a.numel() // max(a.shape[1], 1)
    tile = convolution_tile(a.dtype, groups * taps, M, N, count, count)
    tiles = triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]) * groups * taps
    # Few tiles leave processors idle, so positions are split into up to four program instances for each.
    parts = max(min(4 * PROCESSORS // tiles, count // (GRADIENT_PART_STEPS * tile[2])), 1)
    part = triton.cdiv(triton.cdiv(count, parts), tile[2]) * tile[2]
    parts = triton.cdiv(count, part) if count else 1
    # A single part goes to `out` without another launch.
    direct = parts == 1 and out.is_contiguous()
    dtype = torch.float64 if a.dtype == torch.float64 else torch.float32  # rounded once, after the last sum
    partial_sums = out if direct else torch.empty((parts, *weight.shape), dtype=dtype, device=a.device)
    PLAIN = max(a.numel(), b.numel(), weight.numel()) < SMALL_TENSOR
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
