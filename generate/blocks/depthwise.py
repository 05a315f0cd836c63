"""Weight gradient of a depthwise convolution: for each channel and tap, a sum over positions.

A program instance takes one pair of channels and a position range. It loads each gradient value once,
and the input under all taps around it, which the cache then holds. Coordinates are computed once for all taps.
The parts are added in a fixed order.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.limits import PROCESSORS
from blocks.offsets import integer_values, integers, plain, plain_value
from blocks.reduction import reduce
from blocks.taps import axis_integers, convolved_tap, spatial_place, wide_offsets
from blocks.types import compute_types

__all__ = ["depthwise_weight_gradient"]

GRADIENT_PART_STEPS = 8  # least steps per part: the result of each part is written, and read again to be added


@triton.jit
def depthwise_gradient_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    sizes,
    pairs,
    shape,
    extents,
    window,
    how,
    strides,
    ACC: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute out[part, channel of a, channel of b in its group, tap] for one channel pair and one part.

    Args:
        a_ptr: [batch, channels of a, *shape], read with `strides`.
        b_ptr: [batch, channels of b, *extents], read with `strides`.
        out_ptr: [parts, channels of a, channels of b per group, *window], contiguous, written.
        sizes: Channels per group in a and b, positions, and positions per part, encoded by `plain`.
        pairs: Channels of a times channels of b per group, encoded by `plain`.
        shape: Spatial sizes of a, encoded by `plain`.
        extents: Spatial sizes of b, encoded by `plain`.
        window: Taps per axis, encoded by `plain`.
        how: Stride, padding and dilation per axis, encoded by `plain`.
        strides: Strides of a and of b, encoded by `plain`.
        ACC: Accumulator type.
        WIDE: Use 64-bit offsets.
        BLOCK_T: Taps per step.
        BLOCK: Positions per step.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    M, N, count, part = integer_values(sizes, True)
    pairs = plain_value(pairs)
    shape, extents, window = integer_values(shape, True), integer_values(extents, True), integer_values(window, True)
    how = integer_values(how, True)
    a_stride, b_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    taps = 1
    for k in tl.static_range(len(window)):
        taps = taps * window[k]
    pair = (tl.program_id(0) % pairs).to(INDEX)
    share = (tl.program_id(0) // pairs).to(INDEX)
    channel = pair // N
    a_ptr += channel * a_stride[1]
    b_ptr += (channel // M * N + pair % N) * b_stride[1]
    t = tl.arange(0, BLOCK_T)[:, None].to(INDEX)
    for first in range(0, taps, BLOCK_T):
        acc = tl.zeros([BLOCK_T, BLOCK], ACC)
        for start in range(0, part, BLOCK):
            i = share * part + start + tl.arange(0, BLOCK)[None, :]
            positions = spatial_place(i, shape)
            offset, valid, _ = convolved_tap(positions, first + t, window, how, extents, b_stride, window, False)
            inside = i < count
            a_offset = positions[0] * a_stride[0]
            for k in tl.static_range(len(shape)):
                a_offset += positions[k + 1] * a_stride[k + 2]
            a = tl.load(a_ptr + a_offset, mask=inside, other=0).to(ACC)
            b = tl.load(b_ptr + offset, mask=valid & inside & (first + t < taps), other=0).to(ACC)
            acc += tl.where(valid, a * b, 0)  # a tap outside must not add a * 0, which may be NaN
        out_offset = (share * pairs + pair) * taps + first + tl.arange(0, BLOCK_T)
        tl.store(out_ptr + out_offset, tl.sum(acc, 1), mask=first + tl.arange(0, BLOCK_T) < taps)


def depthwise_weight_gradient(a, b, weight, stride, padding, dilation, groups, out):
    """Compute the weight gradient for groups with few channels into `out`, and return it.

    Each position of a is multiplied by the elements of b on which its taps fall. `out` has the shape of weight.
    """
    window = weight.shape[2:]
    taps, M, N = math.prod(window), a.shape[1] // groups, b.shape[1] // groups
    count, pairs = a.numel() // max(a.shape[1], 1), a.shape[1] * N
    BLOCK_T = min(triton.next_power_of_2(taps), 16)
    BLOCK = 2048 // BLOCK_T  # the accumulators, [BLOCK_T, BLOCK], have 16 elements per thread
    parts = max(min(triton.cdiv(16 * PROCESSORS, pairs), count // (GRADIENT_PART_STEPS * BLOCK)), 1)
    part = triton.cdiv(triton.cdiv(count, parts), BLOCK) * BLOCK
    parts = triton.cdiv(count, part) if count else 1
    dtype = torch.float64 if a.dtype == torch.float64 else torch.float32
    partial_sums = torch.empty((parts, *weight.shape), dtype=dtype, device=a.device)
    depthwise_gradient_kernel[(pairs * parts,)](
        a,
        b,
        partial_sums,
        integers((M, N, count, part), True),
        plain(pairs),
        integers(a.shape[2:], True),
        integers(b.shape[2:], True),
        integers(window, True),
        integers(axis_integers(stride, padding, dilation), True),
        (integers(a.stride(), True), integers(b.stride(), True)),
        ACC=compute_types(dtype)[1],
        WIDE=wide_offsets((a, b, partial_sums)),
        BLOCK_T=BLOCK_T,
        BLOCK=BLOCK,
        num_warps=4,
    )
    total = reduce("sum", [partial_sums], [0], dtype=dtype) if parts > 1 else partial_sums.select(0, 0)
    elementwise(identity, total, common=dtype, out=out)
    return out
