"""Group normalization with one group per program, so that a second read hits the cache."""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.limits import PROCESSORS
from blocks.offsets import plain, plain_value
from blocks.tiles import fullest
from blocks.types import compute_types, convert, number_argument, number_value
from blocks.whole_rows import MAX_WHOLE_ELEMENTS

SMALLEST_GROUP = 512  # elements; a smaller group gives a warp less than 16 for each lane


@triton.jit
def whole_group_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    eps,
    group,
    channels,
    pixels,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Normalize one group that the program holds whole, so it is read once.

    Args:
        x_ptr: contiguous [N, group, channels, pixels], read.
        weight_ptr: [group * channels], read, or None for ones.
        bias_ptr: [group * channels], read, or None for zeros.
        out_ptr: contiguous [N, group, channels, pixels], written.
        mean_ptr: [N, group], written.
        rstd_ptr: [N, group], inverse deviations, written.
        eps: number added to the variance, encoded by `number_argument`.
        group: groups per image, encoded by `plain`.
        channels: channels per group, encoded by `plain`.
        pixels: pixels per channel, encoded by `plain`.
        COMMON: type to which elements are converted.
        OPMATH: type to compute in.
        EVEN: divisor of the pixel count that the compiler may assume.
        BLOCK_M: channels per tile, at least those in a group.
        BLOCK_N: pixels per tile, at least those in a channel.
    """
    channels, pixels = plain_value(channels), plain_value(pixels) // EVEN * EVEN
    count = channels * pixels
    program = tl.program_id(0).to(tl.int64)
    first = (program % plain_value(group)).to(tl.int32) * channels
    c, p = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    inside = (c < channels)[:, None] & (p < pixels)[None, :]
    offset = c[:, None] * pixels + p[None, :]
    x = convert(tl.load(x_ptr + program * count + offset, mask=inside, other=0), COMMON).to(OPMATH)
    mean = tl.sum(x * (tl.full([], 1, OPMATH) / count))  # as in blocks/whole_rows.py
    mean += tl.sum(tl.where(inside, x - mean, 0)) / count
    centered = tl.where(inside, x - mean, 0)
    rest = tl.sum(centered) / count
    # `rest` is the rounding error of the mean; its square corrects the variance
    variance = tl.sum(centered * centered) / count - rest * rest
    variance = tl.where(variance < 0, 0, variance) + number_value(eps, OPMATH)
    rstd = divide(tl.full([1], 1, OPMATH), root(tl.full([1], 0, OPMATH) + variance))
    mean = tl.zeros_like(rstd) + (mean + rest)
    tl.store(mean_ptr + program + tl.arange(0, 1), convert(mean, mean_ptr.dtype.element_ty))
    tl.store(rstd_ptr + program + tl.arange(0, 1), convert(rstd, rstd_ptr.dtype.element_ty))
    scale = tl.broadcast_to(rstd, [BLOCK_M])
    if weight_ptr is not None:
        scale *= tl.load(weight_ptr + first + c, mask=c < channels, other=0).to(OPMATH)
    shift = tl.full([BLOCK_M], -0.0, OPMATH)  # x + -0.0 is x for both zeros
    if bias_ptr is not None:
        shift = tl.load(bias_ptr + first + c, mask=c < channels, other=0).to(OPMATH)
    result = (centered - rest) * scale[:, None] + shift[:, None]
    tl.store(out_ptr + program * count + offset, convert(result, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def group_tile(ptr, first, start, channels, pixels, COMMON: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Load an [M, N] tile: channels from `first` on by pixels from `start` on, with 0 beyond the last."""
    c, p = first + tl.arange(0, M), start + tl.arange(0, N)
    inside = (c < channels)[:, None] & (p < pixels)[None, :]
    return convert(tl.load(ptr + (c[:, None] * pixels + p[None, :]), mask=inside, other=0), COMMON)


@triton.jit
def group_gradients_kernel(
    x_ptr,
    grad_ptr,
    mean_ptr,
    rstd_ptr,
    weight_ptr,
    out_ptr,
    total_ptr,
    product_ptr,
    group,
    channels,
    pixels,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sum the gradients, and their products with the normalized values, per channel in one group.

    If out_ptr is not None, the kernel then stores the gradients for the group's elements.

    Args:
        x_ptr: contiguous [N, group, channels, pixels], read.
        grad_ptr: contiguous [N, group, channels, pixels], read.
        mean_ptr: [N, group], read.
        rstd_ptr: [N, group], inverse deviations, read.
        weight_ptr: [group * channels], read, or None for ones.
        out_ptr: gradient of x in its shape, written, or None.
        total_ptr: [N, group * channels], sums of the gradients, written.
        product_ptr: [N, group * channels], sums of the products, written.
        group: groups per image, encoded by `plain`.
        channels: channels per group, encoded by `plain`.
        pixels: pixels per channel, encoded by `plain`.
        COMMON: type to which elements are converted.
        OPMATH: type to compute in.
        EVEN: divisor of the pixel count that the compiler may assume.
        BLOCK_M: channels per tile.
        BLOCK_N: pixels per tile.
    """
    channels, pixels = plain_value(channels), plain_value(pixels) // EVEN * EVEN
    program = tl.program_id(0).to(tl.int64)
    x_ptr += program * channels * pixels
    grad_ptr += program * channels * pixels
    weight_ptr = None if weight_ptr is None else weight_ptr + program % plain_value(group) * channels
    mean = tl.load(mean_ptr + program).to(OPMATH)
    rstd = tl.load(rstd_ptr + program).to(OPMATH)
    all_total = tl.zeros([BLOCK_M], OPMATH)
    all_product = tl.zeros([BLOCK_M], OPMATH)
    for first in range(0, channels, BLOCK_M):
        total = tl.zeros([BLOCK_M, BLOCK_N], OPMATH)
        product = tl.zeros([BLOCK_M, BLOCK_N], OPMATH)
        for start in range(0, pixels, BLOCK_N):
            x = group_tile(x_ptr, first, start, channels, pixels, COMMON, BLOCK_M, BLOCK_N).to(OPMATH)
            grad = group_tile(grad_ptr, first, start, channels, pixels, COMMON, BLOCK_M, BLOCK_N).to(OPMATH)
            total += grad
            product += grad * ((x - mean) * rstd)
        c = first + tl.arange(0, BLOCK_M)
        sums, products = tl.sum(total, 1), tl.sum(product, 1)
        tl.store(total_ptr + program * channels + c, sums, mask=c < channels)
        tl.store(product_ptr + program * channels + c, products, mask=c < channels)
        if weight_ptr is not None:
            weight = tl.load(weight_ptr + c, mask=c < channels, other=0).to(OPMATH)
            sums, products = sums * weight, products * weight
        all_total += sums
        all_product += products
    # the gradient needs sums over the whole group, so x and grad are read again, from the cache
    if out_ptr is not None:
        out_ptr += program * channels * pixels
        count = tl.zeros([], OPMATH) + channels * pixels
        shift, slope = tl.sum(all_total, 0) / count, tl.sum(all_product, 0) / count
        for first in range(0, channels, BLOCK_M):
            c = first + tl.arange(0, BLOCK_M)
            weight = tl.full([BLOCK_M], 1, OPMATH)
            if weight_ptr is not None:
                weight = tl.load(weight_ptr + c, mask=c < channels, other=0).to(OPMATH)
            for start in range(0, pixels, BLOCK_N):
                x = group_tile(x_ptr, first, start, channels, pixels, COMMON, BLOCK_M, BLOCK_N).to(OPMATH)
                grad = group_tile(grad_ptr, first, start, channels, pixels, COMMON, BLOCK_M, BLOCK_N).to(OPMATH)
                result = rstd * ((grad * weight[:, None] - shift) - (x - mean) * rstd * slope)
                p = start + tl.arange(0, BLOCK_N)
                inside = (c < channels)[:, None] & (p < pixels)[None, :]
                at = out_ptr + (c[:, None] * pixels + p[None, :])
                tl.store(at, convert(result, out_ptr.dtype.element_ty), mask=inside)


def dense_groups(sizes, group, *tensors):
    """Return True if all tensors are contiguous and there are enough groups for one program each."""
    N, C, pixels = sizes
    dense = all([t is None or t.is_contiguous() for t in tensors])
    return dense and N * group >= PROCESSORS and C // group * pixels >= SMALLEST_GROUP


def group_norm_whole(x, weight, bias, out, sizes, group, eps, common, dtype):
    """Fill `out` and return each group's mean and inverse deviation, or None if a group is too large to hold."""
    channels, pixels = sizes[1] // group, sizes[2]
    BLOCK_M, BLOCK_N = triton.next_power_of_2(channels), triton.next_power_of_2(pixels)
    most = MAX_WHOLE_ELEMENTS // 2 if common == torch.float64 else MAX_WHOLE_ELEMENTS
    if most < BLOCK_M * BLOCK_N:
        return None
    mean, rstd = [torch.empty((sizes[0], group), dtype=dtype, device=x.device) for _ in range(2)]
    COMMON, OPMATH = compute_types(common)
    whole_group_kernel[(sizes[0] * group,)](
        x,
        weight,
        bias,
        out,
        mean,
        rstd,
        number_argument(eps, common),
        plain(group),
        plain(channels),
        plain(pixels),
        COMMON=COMMON,
        OPMATH=OPMATH,
        EVEN=math.gcd(pixels, 16),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=max(min(BLOCK_M * BLOCK_N // 1024, 16), 1),
    )
    return mean, rstd


def group_gradients_whole(grad, x, mean, rstd, weight, out, sizes, group, common):
    """Return two [N, C] tensors: the sums of gradients and of products per image and channel; `out` is filled."""
    N, C, pixels = sizes
    total, product = [torch.empty((N, C), dtype=common, device=x.device) for _ in range(2)]
    COMMON, OPMATH = compute_types(common)
    BLOCK_N = fullest(pixels, (512, 256))
    BLOCK_M = min(triton.next_power_of_2(C // group), max(4096 // BLOCK_N, 1))
    group_gradients_kernel[(N * group,)](
        x,
        grad,
        mean,
        rstd,
        weight,
        out,
        total,
        product,
        plain(group),
        plain(C // group),
        plain(pixels),
        COMMON=COMMON,
        OPMATH=OPMATH,
        EVEN=math.gcd(pixels, 16),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=max(min(BLOCK_M * BLOCK_N // 512, 8), 1),
    )
    return total, product
