"""Grouped matrix products: rows, or the inner dimension, are split into groups with a matrix each.

Used by the grouped_mm kernels. A program instance finds its group from the tile counts of all groups.
"""

import triton
import triton.language as tl
from blocks.matmul import SMALL_PRODUCT, matmul_tile
from blocks.offsets import integer_values, integers, stride_arguments, stride_values
from blocks.product_tiles import tile_product


@triton.jit
def group_bounds(offs_ptr, stride, group, mask, most):
    """Return the first and last bounds of groups, clipped to [0, most]; offs holds the ends."""
    offset = group.to(tl.int64) * stride
    start = tl.load(offs_ptr + offset - stride, mask=mask & (group > 0), other=0)
    end = tl.load(offs_ptr + offset, mask=mask, other=0)
    return tl.minimum(tl.maximum(start, 0), most), tl.minimum(tl.maximum(end, 0), most)


@triton.jit
def group_of_tile(offs_ptr, stride, groups, tile, most, BLOCK: tl.constexpr, LANES: tl.constexpr):
    """Return (group, first row, end of the group) for a row tile; the end is 0 if no such tile exists.

    Each step handles LANES groups with a prefix sum over their tile counts.
    """
    before, group, first, last = tile * 0, tile * 0, tile * 0, tile * 0
    for at in range(0, groups, LANES):
        g = at + tl.arange(0, LANES)
        start, end = group_bounds(offs_ptr, stride, g, g < groups, most)
        tiles = tl.cdiv(tl.maximum(end - start, 0), BLOCK)
        index_in_group = tile - (before + tl.cumsum(tiles, 0) - tiles)
        is_group = (index_in_group >= 0) & (index_in_group < tiles)
        group += tl.sum(tl.where(is_group, g, 0), 0)
        first += tl.sum(tl.where(is_group, start + index_in_group * BLOCK, 0), 0)
        last += tl.sum(tl.where(is_group, end, 0), 0)
        before += tl.sum(tiles, 0)
    return group, first, last


@triton.jit
def group_tiles_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    offs_ptr,
    sizes,
    strides,
    TILE: tl.constexpr,
    DEEP: tl.constexpr,
    EVEN: tl.constexpr,
    INSIDE: tl.constexpr,
    PLAIN: tl.constexpr,
    LANES: tl.constexpr,
):
    """Compute one output tile.

    Args:
        a_ptr: [M, K], read.
        b_ptr: [groups, K, N], or [K, N] with DEEP, read.
        out_ptr: [M, N], or [groups, M, N] with DEEP, written.
        offs_ptr: [groups], read: end of each group.
        sizes: M, N, K, groups, and the stride of offs.
        strides: Strides of a by row and column, then of b and of out by group, row and column.
        TILE: BLOCK_M, BLOCK_N, BLOCK_K.
        DEEP: True if groups split the inner dimension, False if they split the rows.
        EVEN: True if BLOCK_K divides K, so that no mask is needed.
        INSIDE: True if no tile reaches beyond the columns.
        PLAIN: True if sizes are encoded by `plain`, and strides by `stride_arguments`.
        LANES: Groups per step in `group_of_tile`.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    BLOCK_K: tl.constexpr = TILE[2]
    M, N, K, groups, offs_stride = integer_values(sizes, PLAIN)
    a_stride, b_stride = stride_values(strides[0], PLAIN), stride_values(strides[1], PLAIN)
    out_stride = stride_values(strides[2], PLAIN)
    across = tl.cdiv(N, BLOCK_N)
    high_tile = tl.program_id(0) // across
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    if DEEP:
        down = tl.cdiv(M, BLOCK_M)
        group = high_tile // down
        first, last = high_tile % down * BLOCK_M, M
        start, end = group_bounds(offs_ptr, offs_stride, group, True, K)
    else:
        group, first, last = group_of_tile(offs_ptr, offs_stride, groups, high_tile, M, BLOCK_M, LANES)
        start, end = 0, K
        b_ptr += group.to(tl.int64) * b_stride[0]
    rows = first.to(tl.int64) + tl.arange(0, BLOCK_M)
    ks = tl.arange(0, BLOCK_K)
    # Rows beyond M are clamped, so that loads need no row mask; the store masks them.
    a_ptr += tl.minimum(rows, M - 1)[:, None] * a_stride[0]
    wrapped = cols if INSIDE else cols % N  # % keeps addresses contiguous, so that loads stay 16 bytes wide
    b_ptr += wrapped[None, :] * b_stride[2]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    if last > first:
        for at in range(start, end, BLOCK_K):
            k = (at + ks).to(tl.int64)
            if EVEN:
                a = tl.load(a_ptr + k[None, :] * a_stride[1])
                b = tl.load(b_ptr + k[:, None] * b_stride[1])
            else:
                a = tl.load(a_ptr + k[None, :] * a_stride[1], mask=(k < end)[None, :], other=0.0)
                b = tl.load(b_ptr + k[:, None] * b_stride[1], mask=(k < end)[:, None], other=0.0)
            acc = tile_product(a, b, acc)
    if DEEP:
        out_ptr += group.to(tl.int64) * out_stride[0]
    out_ptr += rows[:, None] * out_stride[1] + cols[None, :] * out_stride[2]
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=(rows < last)[:, None] & (cols < N)[None, :])


def launch_groups(a, b, out, offs, half):
    """Compute grouped products into `out`. A platform may replace this function.

    Args:
        a: [M, K].
        b: [groups, K, N], or [K, N] if groups split the inner dimension.
        out: [M, N], or [groups, M, N] if groups split the inner dimension.
        offs: End of each group.
        half: Operands have 16 bits.
    """
    launch_group_tiles(a, b, out, offs, half)


def launch_group_tiles(a, b, out, offs, half):
    """Launch `group_tiles_kernel` with a program instance per tile."""
    (M, K), N, groups, deep = a.shape, b.shape[-1], offs.shape[0], b.dim() == 2
    height = M if deep else triton.cdiv(M, groups)
    tile = matmul_tile(groups, height, N, K, half, (128, 128) if half else (64, 64))
    small = max(a.numel(), b.numel(), out.numel()) < SMALL_PRODUCT
    # Each group may end in a partial tile, so this is the most tiles that groups of any sizes can have.
    down = groups * triton.cdiv(M, tile[0]) if deep else (M + groups * (tile[0] - 1)) // tile[0]
    strides = [(0,) * (3 - x.dim()) + x.stride() for x in (b, out)]
    group_tiles_kernel[(down * triton.cdiv(N, tile[1]),)](
        a,
        b,
        out,
        offs,
        integers((M, N, K, groups, offs.stride(0)), small),
        tuple([stride_arguments(stride, small) for stride in (a.stride(), *strides)]),
        TILE=tile[:3],
        DEEP=deep,
        EVEN=not small and not deep and K % tile[2] == 0,
        INSIDE=not small and N % tile[1] == 0,
        PLAIN=small,
        LANES=min(max(triton.next_power_of_2(groups), 16), 1024),
        num_warps=tile[3],
        num_stages=3,
    )
