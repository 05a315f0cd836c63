"""Input samples at coordinates between -1 and 1 (grid_sampler), and their gradients.

Each axis has taps: two around a coordinate (linear), the nearest one (halves to even), or four (cubic, A =
-0.75). Coordinates outside use zeros, the border, or a reflection. The input gradient is accumulated with
atomics.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.creation import fill
from blocks.elementwise import elementwise
from blocks.limits import INT32_MAX, MAX_GRID_YZ
from blocks.offsets import integer_values, integers, plain, plain_value, reach
from blocks.resampling import cubic_weight
from blocks.types import compute_types

FEW_POSITIONS = 16384  # below this, blocks are smaller, so that more program instances share the work


@triton.jit
def inside_coordinate(x, size, PADDING: tl.constexpr, ALIGN: tl.constexpr):
    """Return x clipped to the border (PADDING 1) or reflected (PADDING 2), and its derivative."""
    slope = tl.full(x.shape, 1, x.dtype)
    if PADDING == 2:
        low = 0.0 if ALIGN else -0.5
        span = size - 1 if ALIGN else size
        far = tl.abs(x - low)
        slope = tl.where(x < low, -slope, slope)
        times = tl.floor(far / tl.where(span > 0, span, 1))
        rest = far - times * span
        odd = times - 2 * tl.floor(times * 0.5) == 1
        x = tl.where(span > 0, tl.where(odd, span - rest, rest) + low, 0)
        slope = tl.where(span > 0, tl.where(odd, -slope, slope), 0)
    if PADDING >= 1:
        slope = tl.where((x > 0) & (x < size - 1), slope, 0)
        x = tl.minimum(tl.where(x > 0, x, 0), size - 1)
    return x, slope


@triton.jit
def cubic_slope(share, t):
    """Return `cubic_weight`'s derivative with respect to share."""
    x = tl.where(t < 2, share, 1 - share)
    far = (-2.25 * (x + 1) + 7.5) * (x + 1) - 6.0
    near = (3.75 * x - 4.5) * x
    slope = tl.where((t == 0) | (t == 3), far, near)
    return tl.where(t < 2, slope, -slope)


@triton.jit
def grid_tap(x, T: tl.constexpr, size, MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr):
    """Return (position, weight, derivative of the weight by the coordinate, validity) for tap T."""
    if MODE == 2:
        low = tl.floor(x)
        share = x - low
        at, _ = inside_coordinate(low - 1 + T, size, PADDING, ALIGN)
        which = tl.full(x.shape, T, tl.int32)
        weight, slope = cubic_weight(share, which), cubic_slope(share, which)
    else:
        at, slope = inside_coordinate(x, size, PADDING, ALIGN)
        low = tl.floor(at)
        share = at - low
        if MODE == 0:
            weight = 1 - share if T == 0 else share
            slope = -slope if T == 0 else slope
            at = low + T
        else:
            up = (share > 0.5) | ((share == 0.5) & (low - 2 * tl.floor(low * 0.5) == 1))
            at = tl.where(up, low + 1, low)
            weight, slope = tl.full(x.shape, 1, x.dtype), tl.zeros_like(x)
    valid = (at >= 0) & (at <= size - 1)
    return tl.where(valid, at, 0), weight, slope, valid


@triton.jit
def by_itself(x, product):
    """Return a product that is rounded before an addition (no fused multiply-add), as in ATen.

    The select keeps the compiler from fusing. Rounding decides which cell contains a coordinate.
    """
    return tl.where(x == x, product, x)


@triton.jit
def grid_taps(
    grid_ptr,
    grid_step,
    mask,
    extents,
    stride,
    other_stride,
    MODE: tl.constexpr,
    PADDING: tl.constexpr,
    ALIGN: tl.constexpr,
    FLOAT: tl.constexpr,
    INDEX: tl.constexpr,
    SLOPES: tl.constexpr,
):
    """Return a tuple over all taps for each of: offsets by either stride, weights, slopes, validity.

    Slopes are the weights' derivatives by each coordinate, computed if SLOPES.
    """
    AXES: tl.constexpr = len(extents)
    TAPS: tl.constexpr = 2 if MODE == 0 else 1 if MODE == 1 else 4
    taps, scales = (), ()
    for k in tl.static_range(AXES):
        size = extents[k].to(FLOAT)
        x = tl.load(grid_ptr + (AXES - 1 - k) * grid_step, mask=mask, other=0).to(FLOAT)
        at = (x + 1) / 2 * (size - 1) if ALIGN else (by_itself(x, (x + 1) * size) - 1) / 2
        at = by_itself(x, at)
        for tap in tl.static_range(TAPS):
            taps = taps + (grid_tap(at, tap, size, MODE, PADDING, ALIGN),)
        scales = scales + ((size - 1) / 2 if ALIGN else size / 2,)
    offsets, other_offsets, weights, slopes, valids = (), (), (), (), ()
    for corner in tl.static_range(TAPS**AXES):
        offset, other = tl.zeros(mask.shape, INDEX), tl.zeros(mask.shape, INDEX)
        weight, valid = tl.full(mask.shape, 1, FLOAT), mask
        partial = ()
        for k in tl.static_range(AXES):
            step, w, slope, tap_valid = taps[k * TAPS + corner // TAPS**k % TAPS]
            offset += step.to(INDEX) * stride[k + 2]
            other += step.to(INDEX) * other_stride[k + 2]
            valid = valid & tap_valid
            if SLOPES:
                # product rule: earlier axes' derivatives take this weight, and this axis' takes the earlier weights
                scaled = ()
                for j in tl.static_range(k):
                    scaled = scaled + (partial[j] * w,)
                partial = scaled + (weight * slope * scales[k],)
            weight = weight * w
        offsets, other_offsets, weights = offsets + (offset,), other_offsets + (other,), weights + (weight,)
        slopes, valids = slopes + (partial,), valids + (valid,)
    return offsets, other_offsets, weights, slopes, valids


@triton.jit
def grid_place(n, shape, grid_stride, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Return this program instance's positions.

    The result is (batch, flat index in a sample, offset in the grid, mask, positions per sample).
    """
    i = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK + tl.arange(0, BLOCK)
    mask, area, rest, offset = i < n, 1, i, tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += rest % shape[k] * grid_stride[k + 1]
        rest = rest // shape[k]
        area = area * shape[k]
    return rest, i % area, offset + rest * grid_stride[0], mask, area


@triton.jit
def grid_sampler_kernel(
    x_ptr,
    grid_ptr,
    out_ptr,
    n,
    channels,
    shape,
    extents,
    strides,
    MODE: tl.constexpr,
    PADDING: tl.constexpr,
    ALIGN: tl.constexpr,
    FLOAT: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Sample up to CHANNELS channels at a position block.

    The taps are computed once for all channels.

    Args:
        x_ptr: [N, C, *extents], read.
        grid_ptr: [N, *shape, axes], read: coordinates between -1 and 1, the last axis first.
        out_ptr: [N, C, *shape], contiguous, written.
        n: Number of positions in all samples, encoded by `plain`.
        channels: C, encoded by `plain`.
        shape: Sizes of the grid between N and the coordinates, encoded by `plain`.
        extents: Sizes of x behind N and C, encoded by `plain`.
        strides: Strides of x and of the grid, in elements, encoded by `plain`.
        MODE: Interpolation: 0 linear, 1 nearest, 2 cubic.
        PADDING: Value outside x: 0 zeros, 1 border, 2 reflection.
        ALIGN: `align_corners`: True if -1 and 1 are the centers of the corner elements, False if they are their
            edges.
        FLOAT: Type to compute in.
        WIDE: True to use 64-bit offsets.
        BLOCK: Positions per program instance.
        CHANNELS: Channels per program instance.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    shape, extents = integer_values(shape, True), integer_values(extents, True)
    stride, grid_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    channels = plain_value(channels)
    batch, flat, offset, mask, area = grid_place(plain_value(n), shape, grid_stride, WIDE, BLOCK)
    step = grid_stride[len(extents) + 1]
    offsets, _, weights, _, valids = grid_taps(
        grid_ptr + offset, step, mask, extents, stride, stride, MODE, PADDING, ALIGN, FLOAT, INDEX, False
    )
    first = tl.program_id(1).to(INDEX) * CHANNELS
    for channel in range(first, tl.minimum(first + CHANNELS, channels)):
        total = tl.zeros([BLOCK], FLOAT)
        base = x_ptr + batch * stride[0] + channel * stride[1]
        for k in tl.static_range(len(offsets)):
            x = tl.load(base + offsets[k], mask=valids[k], other=0).to(FLOAT)
            if len(extents) == 2:
                total += x * weights[k]  # NaN if the coordinate is NaN, as in ATen
            else:
                total += tl.where(valids[k], x * weights[k], 0)
        target = (batch * channels + channel) * area + flat
        tl.store(out_ptr + target, total.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def grid_sampler_backward_kernel(
    grad_ptr,
    x_ptr,
    grid_ptr,
    grad_x_ptr,
    grad_grid_ptr,
    n,
    channels,
    shape,
    extents,
    strides,
    MODE: tl.constexpr,
    PADDING: tl.constexpr,
    ALIGN: tl.constexpr,
    FLOAT: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradients for a position block, looping over all channels.

    Args:
        grad_ptr: Output gradient, [N, C, *shape], read.
        x_ptr: [N, C, *extents], read.
        grid_ptr: [N, *shape, axes], read.
        grad_x_ptr: Input gradient, [N, C, *extents], initialized to 0, updated with atomics, or None.
        grad_grid_ptr: Grid gradient, [N, *shape, axes], contiguous, written.
        n: Number of positions in all samples, encoded by `plain`.
        channels: C, encoded by `plain`.
        shape: Sizes of the grid between N and the coordinates, encoded by `plain`.
        extents: Sizes of x behind N and C, encoded by `plain`.
        strides: Strides of grad, x, grid and grad_x, in elements, encoded by `plain`.
        MODE: Interpolation: 0 linear, 1 nearest, 2 cubic.
        PADDING: Value outside x: 0 zeros, 1 border, 2 reflection.
        ALIGN: `align_corners`, see `grid_sampler_kernel`.
        FLOAT: Type to compute in.
        WIDE: True to use 64-bit offsets.
        BLOCK: Positions per program instance.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    AXES: tl.constexpr = len(extents)
    shape, extents = integer_values(shape, True), integer_values(extents, True)
    grad_stride, stride = integer_values(strides[0], True), integer_values(strides[1], True)
    grid_stride, target_stride = integer_values(strides[2], True), integer_values(strides[3], True)
    channels = plain_value(channels)
    batch, flat, offset, mask, area = grid_place(plain_value(n), shape, grid_stride, WIDE, BLOCK)
    step = grid_stride[AXES + 1]
    offsets, target_offsets, weights, slopes, valids = grid_taps(
        grid_ptr + offset, step, mask, extents, stride, target_stride, MODE, PADDING, ALIGN, FLOAT, INDEX, MODE != 1
    )
    grad_offset, rest = batch * grad_stride[0], flat
    for k in tl.static_range(AXES - 1, -1, -1):
        grad_offset += rest % shape[k] * grad_stride[k + 2]
        rest = rest // shape[k]
    by_first, by_second = tl.zeros([BLOCK], FLOAT), tl.zeros([BLOCK], FLOAT)
    by_third = tl.zeros([BLOCK], FLOAT)
    for channel in range(0, channels):
        at = tl.full([], 0, INDEX) + channel
        grad = tl.load(grad_ptr + grad_offset + at * grad_stride[1], mask=mask, other=0).to(FLOAT)
        for k in tl.static_range(len(offsets)):
            if grad_x_ptr is not None:
                base = grad_x_ptr + batch * target_stride[0] + at * target_stride[1]
                # Positions share input elements. Relaxed order suffices, because this kernel does not read the sums.
                tl.atomic_add(base + target_offsets[k], grad * weights[k], mask=valids[k], sem="relaxed")
            if MODE != 1:
                base = x_ptr + batch * stride[0] + at * stride[1]
                x = tl.load(base + offsets[k], mask=valids[k], other=0).to(FLOAT)
                by_first += tl.where(valids[k], x * grad * slopes[k][0], 0)
                by_second += tl.where(valids[k], x * grad * slopes[k][1], 0)
                if AXES == 3:
                    by_third += tl.where(valids[k], x * grad * slopes[k][2], 0)
    DTYPE: tl.constexpr = grad_grid_ptr.dtype.element_ty
    grad_grid_ptr += (batch * area + flat) * AXES
    tl.store(grad_grid_ptr + AXES - 1, by_first.to(DTYPE), mask=mask)
    tl.store(grad_grid_ptr + AXES - 2, by_second.to(DTYPE), mask=mask)
    if AXES == 3:
        tl.store(grad_grid_ptr, by_third.to(DTYPE), mask=mask)


def expect_grid(x, grid, axes, mode, padding):
    """Raise RuntimeError, as ATen does, if shapes, dtypes or modes do not fit."""
    if x.dim() != axes + 2 or grid.dim() != axes + 2 or grid.shape[-1] != axes or x.shape[0] != grid.shape[0]:
        raise RuntimeError(f"cannot sample {tuple(x.shape)} with grid {tuple(grid.shape)}")
    if 0 in x.shape[2:] or x.dtype != grid.dtype or mode not in range(3 if axes == 2 else 2) or padding not in range(3):
        raise RuntimeError(
            f"cannot sample {x.dtype} {tuple(x.shape)} with a {grid.dtype} grid, mode {mode}, padding mode {padding}"
        )


def grid_sampler(x, grid, axes, mode, padding, align):
    """Return samples [N, C, ...] of x [N, C, ...] at grid [N, ..., axes]."""
    expect_grid(x, grid, axes, mode, padding)
    shape = grid.shape[1:-1]
    out = torch.empty((*x.shape[:2], *shape), dtype=x.dtype, device=x.device)
    n = grid.numel() // axes
    if out.numel() == 0:
        return out
    tensors = x, grid
    BLOCK = 256 if n < FEW_POSITIONS else 1024
    CHANNELS = max(8, triton.next_power_of_2(triton.cdiv(x.shape[1], MAX_GRID_YZ)))
    grid_sampler_kernel[(triton.cdiv(n, BLOCK), triton.cdiv(x.shape[1], CHANNELS))](
        x,
        grid,
        out,
        plain(n),
        plain(x.shape[1]),
        integers(shape, True),
        integers(x.shape[2:], True),
        tuple([integers(t.stride(), True) for t in tensors]),
        MODE=mode,
        PADDING=padding,
        ALIGN=align,
        FLOAT=compute_types(x.dtype)[1],
        WIDE=max(out.numel(), *[reach(t.shape, [t.stride()]) for t in tensors]) > INT32_MAX - BLOCK,
        BLOCK=BLOCK,
        CHANNELS=CHANNELS,
        num_warps=BLOCK // 64,
    )
    return out


def grid_sampler_gradients(grad, x, grid, axes, mode, padding, align, output_mask):
    """Return the gradients of x (or None unless output_mask[0]) and the grid.

    Raises RuntimeError if the shapes or dtypes do not fit.
    """
    expect_grid(x, grid, axes, mode, padding)
    shape = grid.shape[1:-1]
    if tuple(grad.shape) != (*x.shape[:2], *shape) or grad.dtype != x.dtype:
        raise RuntimeError(
            f"gradient {grad.dtype} {tuple(grad.shape)} does not fit {tuple(x.shape)} and grid {tuple(grid.shape)}"
        )
    grad_grid = torch.empty(grid.shape, dtype=grid.dtype, device=grid.device)
    common = torch.float64 if x.dtype == torch.float64 else torch.float32
    grad_x = torch.empty(x.shape, dtype=x.dtype, device=x.device) if output_mask[0] else None
    sums = grad_x
    if output_mask[0]:
        sums = grad_x if common == x.dtype else torch.empty(x.shape, dtype=common, device=x.device)
        fill(sums, 0)
    n = grid.numel() // axes
    if n:
        tensors = grad, x, grid, x if sums is None else sums
        BLOCK = 128 if n < FEW_POSITIONS else 512
        grid_sampler_backward_kernel[(triton.cdiv(n, BLOCK),)](
            grad,
            x,
            grid,
            sums,
            grad_grid,
            plain(n),
            plain(x.shape[1]),
            integers(shape, True),
            integers(x.shape[2:], True),
            tuple([integers(t.stride(), True) for t in tensors]),
            MODE=mode,
            PADDING=padding,
            ALIGN=align,
            FLOAT=compute_types(x.dtype)[1],
            WIDE=max(grid.numel(), *[reach(t.shape, [t.stride()]) for t in tensors]) > INT32_MAX - BLOCK,
            BLOCK=BLOCK,
            num_warps=BLOCK // 32,
        )
    if sums is not grad_x:
        elementwise(identity, sums, common=common, out=grad_x)
    return grad_x, grad_grid
