"""Channels-last copies with channels padded to a multiple of 8, as operands for tensor cores.

Used by `blocks.channels_last_convolution`. With 8 channels, a tap is one load of 16 bytes. Copies are fp16 or
bf16. fp32 becomes three bf16 planes with 8 significant bits each, which add up to its 24 bits. A product then
needs the six plane products that are not below the last bit of fp32.

If there are few channels, the copy includes the last axis' padding and that axis' taps become channels.
Windows then overlap in the copy.
"""

import torch
import triton
import triton.language as tl
from blocks.taps import merged_axes, spatial_place, wide_offsets

__all__ = ["channels_last_copy", "eighths", "folds_taps", "loaded_planes", "padded_rows", "planes_product"]

CHANNELS_LAST_TILE = 4096  # elements per program instance of a copy
FOLDED_CHANNELS = 4  # most channels whose taps are folded: a unit of 4 or 8 elements then holds all of them


@triton.jit
def bf16_part(x):
    """Return x cut to the 8 significant bits that bf16 has; NaN stays NaN."""
    # -65536 clears the lower 16 bits, which bf16 lacks
    cut = (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)
    return tl.where(x == x, cut, x)


@triton.jit
def channels_last_kernel(
    x_ptr,
    out_ptr,
    sizes,
    plane,
    shape,
    extents,
    ahead,
    stride,
    PLANES: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Copy x[batch, channel, ...] to out[plane, batch, ..., channel], with 0 in the padding.

    Args:
        x_ptr: [batch, channels, *extents], read with `stride`.
        out_ptr: [PLANES, batch, *shape, width], written.
        sizes: Positions in out (batch included), channels, and padded channels (width).
        plane: Elements per plane.
        shape: Spatial sizes of out.
        extents: Spatial sizes of x.
        ahead: Padding before the first element in each axis.
        stride: Strides of x, in elements.
        PLANES: 1 for a plain copy, 3 to split fp32 into bf16 parts.
        WIDE: Use 64-bit offsets.
        TILE: Positions and channels per program instance.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    M, C, width = sizes[0], sizes[1], sizes[2]
    across = tl.cdiv(width, TILE[1])
    rows = (tl.program_id(0) // across).to(INDEX) * TILE[0] + tl.arange(0, TILE[0])
    cols = (tl.program_id(0) % across).to(INDEX) * TILE[1] + tl.arange(0, TILE[1])
    positions = spatial_place(rows, shape)
    offset, valid = positions[0] * stride[0], rows < M
    for k in tl.static_range(len(shape)):
        at = positions[k + 1] - ahead[k]
        valid &= (at >= 0) & (at < extents[k])
        offset += at * stride[k + 2]
    mask = valid[None, :] & (cols < C)[:, None]
    x = tl.trans(tl.load(x_ptr + (offset[None, :] + cols[:, None] * stride[1]), mask=mask, other=0))
    out_ptr += rows[:, None] * width + cols[None, :]
    mask = (rows < M)[:, None] & (cols < width)[None, :]
    if PLANES == 1:
        tl.store(out_ptr, x, mask=mask)
    else:
        for _ in tl.static_range(PLANES):
            part = bf16_part(x)
            tl.store(out_ptr, part.to(tl.bfloat16), mask=mask)
            out_ptr += plane
            x -= part  # exact, because the part holds the leading bits of x
            x = tl.where(x == x, x, 0.0)


@triton.jit
def loaded_planes(ptr, offset, mask, plane, PLANES: tl.constexpr):
    """Load the tile at these offsets from each plane, as a tuple."""
    first = tl.load(ptr + offset, mask=mask, other=0)
    if PLANES == 1:
        tiles = (first,)
    else:
        ptr += plane
        second = tl.load(ptr + offset, mask=mask, other=0)
        ptr += plane
        tiles = (first, second, tl.load(ptr + offset, mask=mask, other=0))
    return tiles


@triton.jit
def planes_product(a, b, acc):
    """Return acc + a @ b for one or three planes per operand.

    The small products are added first. Infinity times a lower part of 0 is NaN, and then the lower parts are
    left out.
    """
    if len(a) == 1:
        acc = tl.dot(a[0], b[0], acc)
    else:
        low = tl.dot(a[1], b[1])
        low = tl.dot(a[0], b[2], low)
        low = tl.dot(a[2], b[0], low)
        low = tl.dot(a[0], b[1], low)
        low = tl.dot(a[1], b[0], low)
        low = tl.where(low == low, low, 0.0)
        acc += tl.dot(a[0], b[0], low)
    return acc


def new_planes(x, size, width, ahead):
    """Return a new copy [planes, batch, *size, width] of x [batch, channels, ...], shifted by `ahead` in each axis."""
    planes, dtype = (3, torch.bfloat16) if x.dtype == torch.float32 else (1, x.dtype)
    out = torch.empty((planes, x.shape[0], *size, width), dtype=dtype, device=x.device)
    M, BLOCK_C = out.numel() // (planes * width), min(triton.next_power_of_2(width), 64)
    BLOCK_M = CHANNELS_LAST_TILE // max(BLOCK_C, 32)
    channels_last_kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(width, BLOCK_C),)](
        x,
        out,
        (M, x.shape[1], width),
        M * width,
        tuple(size),
        tuple(x.shape[2:]),
        ahead,
        x.stride(),
        PLANES=planes,
        WIDE=wide_offsets((x, out)),
        TILE=(BLOCK_M, BLOCK_C),
        num_warps=4,
    )
    return out


def channels_last_copy(x, width):
    """Return x [batch, channels, ...] as [planes, batch, ..., width], as a view if x already has that layout."""
    if x.dtype != torch.float32 and x.shape[1] == width and x.movedim(1, -1).is_contiguous():
        return x.movedim(1, -1).unsqueeze(0)
    merged = merged_axes(x)
    out = new_planes(merged, merged.shape[2:], width, (0,) * (merged.dim() - 2))
    return out.view(*out.shape[:2], *x.shape[2:], width)


def folds_taps(x, weight, stride, dilation):
    """Return True if the last axis' taps can become channels.

    That needs at most FOLDED_CHANNELS channels, several taps and no dilation.
    """
    return x.shape[1] <= FOLDED_CHANNELS and weight.shape[-1] > 1 and dilation[-1] == 1


def padded_rows(x, window, stride, padding, count):
    """Return a copy with the last axis padded, and how to step through it as if that axis' taps were channels.

    Args:
        x: [batch, channels, ...], with few channels.
        window: Taps per axis.
        stride: Stride per axis.
        padding: Padding per axis.
        count: Result positions along the last axis.

    Returns:
        (copy, unit, strides, extents). A unit is the `unit` elements of one tap, and strides count units.
    """
    # Windows must begin at multiples of 16 bytes: 8 elements, or 4 if the stride is even.
    unit = 4 if stride[-1] % 2 == 0 else 8
    width = (count - 1) * stride[-1] + window[-1]
    ahead = (0,) * (len(window) - 1) + (padding[-1],)
    copy = new_planes(x, (*x.shape[2:-1], width), unit, ahead)
    steps = [s // unit for s in copy.stride()[1:-1]]
    return copy, unit, (steps[0], 1, *steps[1:-1], stride[-1]), (*x.shape[2:-1], count)


def eighths(copy):
    """Return a copy's strides in units of 8: batch, channels (1, unused), and the axes."""
    steps = [s // 8 for s in copy.stride()[1:-1]]
    return (steps[0], 1, *steps[1:])
