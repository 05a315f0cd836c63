"""aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool
    count_include_pad=True, int? divisor_override=None) -> Tensor

The result is the sum over a window, divided by its size. There are three cases:

- Small windows on contiguous planes: a lane in a flat grid computes two results, one below the other, so rows
  in both windows are read once. With a column stride of 2, two elements are read at a time.
- A window that covers the whole plane: each plane is summed as one row.
- All others use the general window kernels.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.offsets import integer_values, integers, plain, plain_value
from blocks.planes import by_window, ends_beyond, magic_numbers, magic_quotient, on_planes, tap_inside
from blocks.pooling import sliding_axes, sliding_taps
from blocks.types import compute_types, convert
from blocks.windows import batched, suggested_format, windows

OVERLOADS = ("aten::avg_pool2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int64")

MOST_TAPS = 32  # largest window whose taps are unrolled at compile time
PLANE_TILE = 512  # elements per tile if a window covers its plane, 4 per thread
DIVISOR_LIMIT = 2**29  # below it, the divisor d is an int32 argument; `plain` encodes it as 2 * d + 3
MANY_LANES = 1048576  # lanes from which blocks of 512 still make 2048 program instances or more


@triton.jit
def row_sum(x_ptr, pair_ptr, valid, left, W, K: tl.constexpr, P: tl.constexpr, OVER: tl.constexpr, FIRST: tl.constexpr):
    """Return the sum over one row in a window.

    Taps from FIRST on are read two at a time; FIRST == K means that no pairs are read.
    """
    ACC: tl.constexpr = tl.float32 if x_ptr.dtype.element_ty.primitive_bitwidth < 64 else x_ptr.dtype.element_ty
    acc = tl.zeros(valid.shape, ACC)
    for t in tl.static_range(K):
        mask = valid & tap_inside(left, t, W, K, P, 1, OVER)
        if t >= FIRST and (t - FIRST) % 2 == 0 and t + 1 < K:
            both = tl.load(pair_ptr + (t - FIRST), mask=mask[:, None], other=0)
            acc += tl.sum(both.to(ACC), 1)
        elif t < FIRST or (t - FIRST) % 2 == 0:
            acc += tl.load(x_ptr + t, mask=mask, other=0).to(ACC)
    return acc


@triton.jit
def average_kernel(
    x_ptr,
    out_ptr,
    n,
    down,
    across,
    sizes,
    divisor,
    WINDOW: tl.constexpr,
    OVER: tl.constexpr,
    ODD: tl.constexpr,
    SIZED: tl.constexpr,
    PADDED: tl.constexpr,
    PAIRS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute two results per lane, one below the other.

    Integer arguments are encoded, and `down` and `across` are divisors for `magic_quotient`.

    Args:
        x_ptr: [planes, H, W], contiguous, read.
        out_ptr: [planes, OH, OW], contiguous, written.
        n: Number of lanes: pairs of results.
        down: Pairs of results per column of a plane.
        across: OW.
        sizes: (H, W, OH, OW).
        divisor: Divisor of a sum, unless SIZED.
        WINDOW: (KH, KW, SH, SW, PH, PW): window size, stride and padding.
        OVER: Windows may end beyond the padding.
        ODD: OH is odd, so the second result may be missing.
        SIZED: Divide by the window's own size. Otherwise divide by `divisor`.
        PADDED: The window's own size includes padding.
        PAIRS: The column stride is 2 and W is even, so two elements are read at a time.
        BLOCK: Lanes per program instance.
    """
    KH: tl.constexpr = WINDOW[0]
    SH: tl.constexpr = WINDOW[2]
    FIRST: tl.constexpr = WINDOW[5] % 2 if PAIRS else WINDOW[1]
    H, W, OH, OW = integer_values(sizes, True)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < plain_value(n)
    pair = magic_quotient(i, across)
    plane = magic_quotient(pair, down)
    row = (pair - plane * ((OH + 1) // 2)) * 2
    column = i - pair * OW
    top, left = row * SH - WINDOW[4], column * WINDOW[3] - WINDOW[5]
    line = plane * H + top
    pair_ptr = x_ptr + (line * (W // 2) + column - WINDOW[5] // 2)[:, None] * 2 + tl.arange(0, 2)[None, :]
    x_ptr += line * W + left
    out_ptr += (plane * OH + row) * OW + column
    step = W // 2 * 2 if PAIRS else W
    for t in tl.static_range(SH + KH):
        valid = inside & tap_inside(top, t, H, SH + KH, WINDOW[4], 1, OVER or ODD)
        part = row_sum(x_ptr, pair_ptr, valid, left, W, WINDOW[1], WINDOW[5], OVER, FIRST)
        if t == 0:
            upper = part
        elif t < KH:
            upper += part
        if t == SH:
            lower = part
        elif t > SH:
            lower += part
        x_ptr += W
        pair_ptr += step
    upper = by_window(upper, top, left, (H, W), divisor, WINDOW, SIZED, PADDED)
    lower = by_window(lower, top + SH, left, (H, W), divisor, WINDOW, SIZED, PADDED)
    tl.store(out_ptr, convert(upper, out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_ptr + OW, convert(lower, out_ptr.dtype.element_ty), mask=inside & (row + 1 < OH) if ODD else inside)


@triton.jit
def plane_average_kernel(
    x_ptr, out_ptr, planes, size, divisor, ACC: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Store each plane's sum divided by `divisor`, for BLOCK_M planes.

    Args:
        x_ptr: [planes, size], contiguous, read.
        out_ptr: [planes], contiguous, written.
        planes: Number of planes, encoded by `plain`.
        size: Elements per plane, encoded by `plain`.
        divisor: Divisor of a sum, encoded by `plain`.
        ACC: Triton type of the sums.
        BLOCK_M: Planes per program instance.
        BLOCK_N: Elements of a plane that are loaded at a time.
    """
    plane, size = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), plain_value(size)
    inside = plane < plain_value(planes)
    x_ptr += (plane * size)[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    for start in range(0, size, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)[None, :]
        acc += tl.load(x_ptr + i, mask=inside[:, None] & (i < size), other=0).to(ACC)
    by = (tl.zeros_like(plane) + plain_value(divisor)).to(ACC)
    out = tl.sum(acc, 1)
    out = out // by if ACC.is_int() else divide(out, by)
    tl.store(out_ptr + plane, convert(out, out_ptr.dtype.element_ty), mask=inside)


def wrapper(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    counted = 1 if count_include_pad else 0
    divisor_mode = (counted, 1) if divisor_override is None else (2, divisor_override)
    axes, sizes = sliding_axes(self, 2, kernel_size, stride, padding, 1, ceil_mode, *divisor_mode)
    shape = (*self.shape[:-2], *sizes)
    out = torch.empty(shape, dtype=self.dtype, device=self.device, memory_format=suggested_format(self))
    n, ACC = out.numel(), compute_types(self.dtype)[1]
    (SH, PH, _, KH, H, OH, _, _), (SW, PW, _, KW, W, OW, _, _) = axes[0][0], axes[1][0]
    covers_plane = (KH, KW, PH, PW) == (H, W, 0, 0)
    fits = on_planes(self, out) and abs(divisor_override or 1) < DIVISOR_LIMIT
    if n == 0 or not fits or (KH * KW > MOST_TAPS and not covers_plane):
        function, taps = sliding_taps(axes)
        windows(function, "mean", batched(self, 2), batched(out, 2), axes, taps)
        return out
    divisor = KH * KW if divisor_override is None else divisor_override
    encoded_divisor = plain(divisor)
    if covers_plane:
        BLOCK_N = min(triton.next_power_of_2(H * W), 1024)
        BLOCK_M = max(PLANE_TILE // BLOCK_N, 1)
        arguments = self, out, plain(n), plain(H * W), encoded_divisor
        plane_average_kernel[(triton.cdiv(n, BLOCK_M),)](
            *arguments, ACC=ACC, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4
        )
        return out
    over = ends_beyond(axes)
    lanes = n // OH * triton.cdiv(OH, 2)
    BLOCK = 512 if lanes >= MANY_LANES else 256
    average_kernel[(triton.cdiv(lanes, BLOCK),)](
        self,
        out,
        plain(lanes),
        magic_numbers(triton.cdiv(OH, 2)),
        magic_numbers(OW),
        integers((H, W, OH, OW), True),
        encoded_divisor,
        WINDOW=(KH, KW, SH, SW, PH, PW),
        OVER=over,
        ODD=OH % 2 == 1,
        SIZED=divisor_override is None and (over or (not count_include_pad and PH + PW > 0)),
        PADDED=count_include_pad,
        PAIRS=SW == 2 and W % 2 == 0,
        BLOCK=BLOCK,
        num_warps=4,
    )
    return out
