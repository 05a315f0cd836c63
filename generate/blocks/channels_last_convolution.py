"""Large convolutions on channels-last copies of their operands (`blocks.channels_last`), with tensor cores.

Used by `blocks.convolution` and `blocks.weight_gradients` for a single group. For the forward pass, a program
instance owns a tile of positions by channels and adds the products of windows and weight, tap by tap. For the
weight gradient, it sums over positions for one tap. Long sums are cut into parts, which a second launch adds in a
fixed order.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.channels_last import (
    channels_last_copy,
    eighths,
    folds_taps,
    loaded_planes,
    padded_rows,
    planes_product,
)
from blocks.depthwise import GRADIENT_PART_STEPS
from blocks.elementwise import elementwise
from blocks.limits import PROCESSORS
from blocks.reduction import reduce
from blocks.taps import axis_integers, convolved_tap, multiples, next_place, spatial_place, wide_offsets

__all__ = ["channels_last_convolution", "channels_last_gradient"]

LARGEST_CONVOLVED_TILE = 128 * 128  # elements of a tile that needs 8 warps for its accumulators
LEAST_CONVOLVED_TILE = 4096  # elements below which a tile does not shrink further (64 x 64 or 128 x 32)
LEAST_PRODUCTS = 2**22  # with fewer products, tensor cores do not pay for the launches that copy the operands
MOST_PHASES = 8  # most launches for a transposed convolution, which takes one for each remainder


@triton.jit
def channels_last_convolution_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    sizes,
    shape,
    extents,
    how,
    strides,
    planes,
    WINDOW: tl.constexpr,
    SWAPPED: tl.constexpr,
    PLANES: tl.constexpr,
    UNIT: tl.constexpr,
    LAST: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Compute one result tile, positions by output channels.

    Args:
        x_ptr: [PLANES, batch, *extents, channels in], planes of a channels-last copy, read.
        weight_ptr: Planes of a channels-last copy of the weight, read; the order of its axes follows SWAPPED.
        bias_ptr: [channels out] or None, read.
        out_ptr: [batch, channels out, *shape], written.
        sizes: Positions, channels out, and units of channels in.
        shape: Spatial sizes of the result.
        extents: Spatial sizes of x.
        how: Stride, padding and dilation per axis.
        strides: Strides of x and the weight in units, and of the result in elements. The weight's first stride
            belongs to channels in if SWAPPED, else to channels out. The strides of its taps follow.
        planes: Elements per plane in x and the weight.
        WINDOW: Taps per axis.
        SWAPPED: The weight's innermost axis holds channels out instead of channels in.
        PLANES: 1 for fp16 and bf16, 3 for fp32 split into bf16 parts.
        UNIT: Elements per unit: 16 bytes, or a tap. Multiplying by it lets the compiler vectorize loads.
        LAST: The result is channels-last; otherwise the tile is transposed before it is stored.
        WIDE: Use 64-bit offsets.
        TILE: BLOCK_M, BLOCK_N, BLOCK_K.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    M, N, K = sizes[0], sizes[1], sizes[2] * UNIT
    x_stride, w_stride, out_stride = multiples(strides[0], UNIT), multiples(strides[1], UNIT), strides[2]
    across = tl.cdiv(N, BLOCK_N)
    rows = (tl.program_id(0) // across).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % across).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, TILE[2]).to(INDEX)
    positions = spatial_place(rows, shape)
    if SWAPPED:
        weight_ptr += cols[None, :] + ks[:, None] * w_stride[0]
    else:
        weight_ptr += cols[None, :] * w_stride[0] + ks[:, None]
    chunks, taps = tl.cdiv(K, TILE[2]), 1
    for k in tl.static_range(len(WINDOW)):
        taps = taps * WINDOW[k]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for step in range(0, taps * chunks):
        first = (step % chunks * TILE[2]).to(INDEX)
        tap = step // chunks
        offset, valid, tap_offset = convolved_tap(positions, tap, WINDOW, how, extents, x_stride, w_stride[1:], False)
        left = first + ks < K
        mask = (valid & (rows < M))[:, None] & left[None, :]
        a = loaded_planes(x_ptr, offset[:, None] + (first + ks)[None, :], mask, planes[0], PLANES)
        b_mask = left[:, None] & (cols < N)[None, :]
        b = loaded_planes(weight_ptr, tap_offset + first * (w_stride[0] if SWAPPED else 1), b_mask, planes[1], PLANES)
        acc = planes_product(a, b, acc)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + cols, mask=cols < N, other=0).to(tl.float32)[None, :]
    offset = positions[0] * out_stride[0]
    for k in tl.static_range(len(shape)):
        offset += positions[k + 1] * out_stride[k + 2]
    value = acc.to(out_ptr.dtype.element_ty)
    if LAST:
        out_ptr += offset[:, None] + cols[None, :] * out_stride[1]
        tl.store(out_ptr, value, mask=(rows < M)[:, None] & (cols < N)[None, :])
    else:
        out_ptr += offset[None, :] + cols[:, None] * out_stride[1]
        tl.store(out_ptr, tl.trans(value), mask=(rows < M)[None, :] & (cols < N)[:, None])


@triton.jit
def channels_last_gradient_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    sizes,
    shape,
    extents,
    window,
    how,
    strides,
    planes,
    PLANES: tl.constexpr,
    UNIT: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Compute out[part, channel of a, tap, channel of b] for one tap and one position range.

    Each element is the sum over positions of a times the element of b on which the tap falls.

    Args:
        a_ptr: [PLANES, batch, *shape, channels of a], planes of a channels-last copy, read.
        b_ptr: [PLANES, batch, *extents, channels of b], planes of a channels-last copy, read.
        out_ptr: [parts, channels of a, taps, channels of b] fp32, contiguous, written.
        sizes: Units of a's and b's channels, positions, and positions per part.
        shape: Spatial sizes of a.
        extents: Spatial sizes of b.
        window: Taps per axis.
        how: Stride, padding and dilation per axis.
        strides: Strides of b in units.
        planes: Elements per plane in a and b.
        PLANES: 1 for fp16 and bf16, 3 for fp32 split into bf16 parts.
        UNIT: Elements per unit: 16 bytes, or a tap.
        WIDE: Use 64-bit offsets.
        TILE: BLOCK_M, BLOCK_N, BLOCK_K (channels of a, channels of b, positions per step).
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    M, N, count, part = sizes[0] * UNIT, sizes[1] * UNIT, sizes[2], sizes[3]
    b_stride = multiples(strides, UNIT)
    taps = 1
    for k in tl.static_range(len(window)):
        taps = taps * window[k]
    across = tl.cdiv(N, BLOCK_N)
    tap = tl.program_id(0) % taps
    index = tl.program_id(0) // taps
    rows = (index // across).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (index % across).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    i = tl.program_id(1).to(INDEX) * part + tl.arange(0, TILE[2])
    positions, ahead = spatial_place(i, shape), spatial_place(tl.full([], TILE[2], INDEX), shape)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    # The coordinates of a position advance by additions with carry, because divisions by the shape cost more.
    for _ in range(0, part, TILE[2]):
        offset, valid, _ = convolved_tap(positions, tap, window, how, extents, b_stride, window, False)
        at = i * M
        inside = i < count
        a = loaded_planes(a_ptr, rows[:, None] + at[None, :], (rows < M)[:, None] & inside[None, :], planes[0], PLANES)
        mask = (valid & inside)[:, None] & (cols < N)[None, :]
        b = loaded_planes(b_ptr, offset[:, None] + cols[None, :], mask, planes[1], PLANES)
        acc = planes_product(a, b, acc)
        i += TILE[2]
        positions = next_place(positions, ahead, shape)
    row = (tl.program_id(1).to(INDEX) * M + rows) * taps + tap
    tl.store(out_ptr + (row[:, None] * N + cols[None, :]), acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def _reads_rows(window, out):
    """Return True if the operands need no copies, because 16 consecutive positions are already one load.

    That holds for a single axis with a window of one element.
    """
    return len(window) == window[0] == 1 and out.shape[2] % 16 == 0


def _channels_last_tile(positions, N, K, half):
    """Return (BLOCK_M, BLOCK_N, BLOCK_K) and warps, with smaller tiles if there would be fewer than PROCESSORS."""
    BLOCK_M, BLOCK_N = 128, min(max(triton.next_power_of_2(N), 16), 128 if half else 64)
    while (
        BLOCK_M * BLOCK_N > LEAST_CONVOLVED_TILE
        and triton.cdiv(positions, BLOCK_M) * triton.cdiv(N, BLOCK_N) < PROCESSORS
    ):
        BLOCK_M, BLOCK_N = (64, BLOCK_N) if BLOCK_M == 128 else (64, BLOCK_N // 2)
    BLOCK_K = min(max(triton.next_power_of_2(K), 16), 64 if half else 32)
    return (BLOCK_M, BLOCK_N, BLOCK_K), 8 if BLOCK_M * BLOCK_N == LARGEST_CONVOLVED_TILE else 4


def _launch_plain(x, weight, bias, out, spec, half, swapped, unit):
    """Launch one convolution kernel over `out`.

    x and weight are planes. `spec` holds channels in, strides of x in units, its extents, strides of the weight
    in units, window, and stride, padding and dilation of each axis.
    """
    K, x_stride, extents, w_stride, window, how = spec
    M, N = out.numel() // out.shape[1], out.shape[1]
    tile, warps = _channels_last_tile(M, N, K, half)
    channels_last_convolution_kernel[(triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]),)](
        x,
        weight,
        bias,
        out,
        (M, N, K // unit),
        tuple(out.shape[2:]),
        extents,
        how,
        (x_stride, w_stride, out.stride()),
        (x.stride(0), weight.stride(0)),
        WINDOW=tuple(window),
        SWAPPED=swapped,
        PLANES=x.shape[0],
        UNIT=unit,
        LAST=out.stride(1) == 1,
        WIDE=wide_offsets((x, weight, out)),
        TILE=tile,
        num_warps=warps,
        num_stages=3,
    )


def _every(out, phase, stride):
    """Return a view with the positions of out that begin at `phase` and step by `stride`."""
    size = [triton.cdiv(max(n - r, 0), s) for n, r, s in zip(out.shape[2:], phase, stride, strict=True)]
    steps = out.stride()
    offset = sum([r * step for r, step in zip(phase, steps[2:], strict=True)]) + out.storage_offset()
    apart = [step * s for step, s in zip(steps[2:], stride, strict=True)]
    return out.as_strided((*out.shape[:2], *size), (*steps[:2], *apart), offset)


def _transposed_phases(x, weight, bias, out, stride, padding, dilation, half):
    """Compute a transposed convolution as one plain convolution per remainder of the position modulo the stride.

    All positions with the same remainder use the same taps, every stride-th one.
    """
    taps = weight.shape[2:]
    x, weight = channels_last_copy(x, x.shape[1]), channels_last_copy(weight, triton.cdiv(weight.shape[1], 8) * 8)
    extents, steps = tuple(x.shape[2:-1]), weight.stride()
    for number in range(math.prod(stride)):
        phase = [number // math.prod(stride[k + 1 :]) % s for k, s in enumerate(stride)]
        first = [(r + p) % s for r, p, s in zip(phase, padding, stride, strict=True)]
        target = _every(out, phase, stride)
        window = tuple([max(triton.cdiv(k - t, s), 0) for k, t, s in zip(taps, first, stride, strict=True)])
        ahead = [-((r + p) // s) for r, p, s in zip(phase, padding, stride, strict=True)]
        how = tuple([v for a, d in zip(ahead, dilation, strict=True) for v in (1, a, -d)])
        if target.numel() == 0:
            continue
        kernel = weight  # taps before the first one of this remainder are cut off
        for k, t in enumerate(first):
            kernel = kernel.narrow(k + 2, min(t, taps[k] - 1), taps[k] - min(t, taps[k] - 1))
        w_stride = (steps[1] // 8, *[w * s // 8 for w, s in zip(steps[2:-1], stride, strict=True)])
        _launch_plain(x, kernel, bias, target, (x.shape[-1], eighths(x), extents, w_stride, window, how), half, True, 8)


def channels_last_convolution(x, weight, bias, out, stride, padding, dilation, transposed):
    """Compute `out` as `convolve` does, for one group, and return True; return False if this path does not apply.

    It applies to fp16, bf16 and fp32 with at least LEAST_PRODUCTS products, and with a multiple of 8 channels
    or foldable taps.
    """
    half, K, window = x.dtype in (torch.float16, torch.bfloat16), x.shape[1], tuple(weight.shape[2:])
    work = out.numel() * K * math.prod(window)
    folds = not transposed and folds_taps(x, weight, stride, dilation)
    if not (half or x.dtype == torch.float32) or work < LEAST_PRODUCTS or not (folds or K % 8 == 0):
        return False
    if _reads_rows(window, out):
        return False
    if transposed:
        if math.prod(stride) > MOST_PHASES or max([s > 1 and d > 1 for s, d in zip(stride, dilation, strict=True)]):
            return False
        _transposed_phases(x, weight, bias, out, stride, padding, dilation, half)
        return True
    how = axis_integers(stride, padding, dilation)
    if folds:
        x, unit, x_stride, extents = padded_rows(x, window, stride, padding, out.shape[-1])
        weight = channels_last_copy(weight, unit)
        K, steps = unit * window[-1], [s // unit for s in weight.stride()[1:-2]]
        spec = K, x_stride, extents, (*steps, 0), (*window[:-1], 1), (*how[:-3], 1, 0, 1)
    else:
        unit, x, weight = 8, channels_last_copy(x, K), channels_last_copy(weight, K)
        spec = K, eighths(x), tuple(x.shape[2:-1]), tuple([s // 8 for s in weight.stride()[1:-1]]), window, tuple(how)
    _launch_plain(x, weight, bias, out, spec, half, False, unit)
    return True


def channels_last_gradient(a, b, weight, stride, padding, dilation, out):
    """Compute the weight gradient as `weight_gradient` does, for one group; return False if this path does not apply.

    The conditions are like those in `channels_last_convolution`.
    """
    half, window, (M, C) = a.dtype in (torch.float16, torch.bfloat16), tuple(weight.shape[2:]), weight.shape[:2]
    folds, work = folds_taps(b, weight, stride, dilation), a.numel() * C * math.prod(window)
    if not (half or a.dtype == torch.float32) or work < LEAST_PRODUCTS or M % 8 or not (folds or C % 8 == 0):
        return False
    if _reads_rows(window, a):
        return False
    how, taps = axis_integers(stride, padding, dilation), window
    shape, count, a = tuple(a.shape[2:]), a.numel() // M, channels_last_copy(a, M)
    unit, N = 8, C
    if folds:
        b, unit, b_stride, extents = padded_rows(b, window, stride, padding, shape[-1])
        taps, how, N = (*window[:-1], 1), (*how[:-3], 1, 0, 1), unit * window[-1]
    else:
        b = channels_last_copy(b, C)
        b_stride, extents = eighths(b), tuple(b.shape[2:-1])
    BLOCK_M, BLOCK_N = [min(max(triton.next_power_of_2(n), 16), 128 if half else 64) for n in (M, N)]
    BLOCK_K = 64 if half else 32
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N) * math.prod(taps)
    parts = max(min(4 * PROCESSORS // tiles, count // (GRADIENT_PART_STEPS * BLOCK_K)), 1)
    part = triton.cdiv(triton.cdiv(count, parts), BLOCK_K) * BLOCK_K
    parts = triton.cdiv(count, part)
    partial_sums = torch.empty((parts, M, math.prod(taps), N), dtype=torch.float32, device=a.device)
    channels_last_gradient_kernel[(tiles, parts)](
        a,
        b,
        partial_sums,
        (M // unit, N // unit, count, part),
        shape,
        extents,
        taps,
        tuple(how),
        b_stride,
        (a.stride(0), b.stride(0)),
        PLANES=a.shape[0],
        UNIT=unit,
        WIDE=wide_offsets((a, b, partial_sums)),
        TILE=(BLOCK_M, BLOCK_N, BLOCK_K),
        num_warps=8 if BLOCK_M * BLOCK_N == LARGEST_CONVOLVED_TILE else 4,
        num_stages=3,
    )
    total = reduce("sum", [partial_sums], [0], dtype=torch.float32) if parts > 1 else partial_sums.select(0, 0)
    total = total.view(M, *window, -1).movedim(-1, 1).narrow(1, 0, C)
    elementwise(identity, total, common=torch.float32, out=out)
    return True
