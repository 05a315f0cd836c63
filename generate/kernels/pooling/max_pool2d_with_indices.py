"""aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2]
    dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)

NaN counts as the largest value, and the first among equal elements wins. There are three cases:

- Small windows on contiguous planes: one result per lane in a flat grid. Coordinates come from a
  multiplication and a shift. The taps are unrolled, and only those that may lie outside the input are masked.
- A window that covers the whole plane: a reduction over a row.
- All others use the general window kernels.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import integer_values, integers, plain, plain_value
from blocks.planes import ends_beyond, magic_numbers, magic_quotient, on_planes, tap_inside
from blocks.pooling import sliding_axes, sliding_taps
from blocks.types import compute_types
from blocks.windows import batched, better_of, largest_of_windows, window_result

OVERLOADS = ("aten::max_pool2d_with_indices",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

MOST_TAPS = 32  # largest window whose taps are unrolled at compile time
PLANE_TILE = 512  # elements per tile if a window covers its plane, 4 per thread


@triton.jit
def first_inside(start, D: tl.constexpr):
    """Return the position of the first tap that does not lie before the input."""
    return tl.where(start < 0, start + (D - 1 - start) // D * D, start)


@triton.jit
def larger_of(best, index, x, i):
    """Return the larger value with its index: the first among equals, the last among NaNs."""
    better = (x > best) | (x != x)
    return tl.where(better, x, best), tl.where(better, i, index)


@triton.jit
def window_largest_kernel(
    x_ptr,
    out_ptr,
    index_ptr,
    n,
    down,
    across,
    sizes,
    LEAST: tl.constexpr,
    WINDOW: tl.constexpr,
    OVER: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store each window's largest element and its index in the plane, one window per lane.

    A tap outside the input reads LEAST, so it never replaces the first tap inside. Integer arguments are
    encoded, and `down` and `across` are divisors for `magic_quotient`.

    Args:
        x_ptr: [planes, H, W], contiguous, read.
        out_ptr: [planes, OH, OW], contiguous, written.
        index_ptr: [planes, OH, OW] int64, contiguous, written.
        n: Number of windows.
        down: OH.
        across: OW.
        sizes: (H, W, OH, OW).
        LEAST: Smallest value of the type, which replaces elements outside the input.
        WINDOW: (KH, KW, SH, SW, PH, PW, DH, DW): window size, stride, padding and dilation.
        OVER: Windows may end beyond the padding.
        ACC: Triton type in which elements are compared.
        BLOCK: Windows per program instance.
    """
    KH: tl.constexpr = WINDOW[0]
    KW: tl.constexpr = WINDOW[1]
    DH: tl.constexpr = WINDOW[6]
    DW: tl.constexpr = WINDOW[7]
    H, W, OH, OW = integer_values(sizes, True)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < plain_value(n)
    row = magic_quotient(i, across)
    plane = magic_quotient(row, down)
    top = (row - plane * OH) * WINDOW[2] - WINDOW[4]
    left = (i - row * OW) * WINDOW[3] - WINDOW[5]
    x_ptr += (plane * H + top) * W + left
    position = top * W + left
    best = tl.full([BLOCK], LEAST, ACC)
    index = first_inside(top, DH) * W + first_inside(left, DW)
    for r in tl.static_range(KH):
        valid = inside & tap_inside(top, r, H, KH, WINDOW[4], DH, OVER)
        for c in tl.static_range(KW):
            mask = valid & tap_inside(left, c, W, KW, WINDOW[5], DW, OVER)
            x = tl.load(x_ptr + c * DW, mask=mask, other=LEAST).to(ACC)
            best, index = larger_of(best, index, x, position + c * DW)
        x_ptr += DH * W
        position += DH * W
    tl.store(out_ptr + i, best.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(index_ptr + i, index.to(tl.int64), mask=inside)


@triton.jit
def plane_largest_kernel(
    x_ptr,
    out_ptr,
    index_ptr,
    planes,
    size,
    LEAST: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store each plane's largest element and its index, for BLOCK_M planes.

    Args:
        x_ptr: [planes, size], contiguous, read.
        out_ptr: [planes], contiguous, written.
        index_ptr: [planes] int64, contiguous, written.
        planes: Number of planes, encoded by `plain`.
        size: Elements per plane, encoded by `plain`.
        LEAST: Smallest value of the type, which replaces elements outside the plane.
        ACC: Triton type in which elements are compared.
        BLOCK_M: Planes per program instance.
        BLOCK_N: Elements of a plane that are loaded at a time.
    """
    plane, size = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), plain_value(size)
    inside = plane < plain_value(planes)
    x_ptr += (plane * size)[:, None]
    best = tl.full([BLOCK_M, BLOCK_N], LEAST, ACC)
    index = tl.full([BLOCK_M, BLOCK_N], 0x7FFFFFFF, tl.int32)
    for start in range(0, size, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)[None, :]
        x = tl.load(x_ptr + i, mask=inside[:, None] & (i < size), other=LEAST).to(ACC)
        best, index = better_of(best, index, x, tl.where(i < size, i, 0x7FFFFFFF))
    best, index = tl.reduce((best, index), 1, better_of)
    tl.store(out_ptr + plane, best.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(index_ptr + plane, index.to(tl.int64), mask=inside)


def wrapper(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    axes, sizes = sliding_axes(self, 2, kernel_size, stride, padding, dilation, ceil_mode)
    out = window_result(self, (*self.shape[:-2], *sizes))
    indices = window_result(self, out.shape, torch.int64)
    n, ACC = out.numel(), compute_types(self.dtype)[1]
    (SH, PH, DH, KH, H, OH, _, _), (SW, PW, DW, KW, W, OW, _, _) = axes[0][0], axes[1][0]
    covers_plane = (KH, KW, PH, PW, DH, DW) == (H, W, 0, 0, 1, 1)
    fits = on_planes(self, out)
    if n == 0 or not fits or (KH * KW > MOST_TAPS and not covers_plane):
        function, taps = sliding_taps(axes)
        largest_of_windows(function, batched(self, 2), batched(out, 2), batched(indices, 2), axes, taps)
        return out, indices
    LEAST = -math.inf if self.is_floating_point() else torch.iinfo(self.dtype).min
    if covers_plane:
        BLOCK_N = min(triton.next_power_of_2(H * W), 1024)
        BLOCK_M = max(PLANE_TILE // BLOCK_N, 1)
        plane_largest_kernel[(triton.cdiv(n, BLOCK_M),)](
            self,
            out,
            indices,
            plain(n),
            plain(H * W),
            LEAST=LEAST,
            ACC=ACC,
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
            num_warps=4,
        )
        return out, indices
    over = ends_beyond(axes)
    window_largest_kernel[(triton.cdiv(n, 256),)](
        self,
        out,
        indices,
        plain(n),
        magic_numbers(OH),
        magic_numbers(OW),
        integers((H, W, OH, OW), True),
        LEAST=LEAST,
        WINDOW=(KH, KW, SH, SW, PH, PW, DH, DW),
        OVER=over,
        ACC=ACC,
        BLOCK=256,
        num_warps=4,
    )
    return out, indices
