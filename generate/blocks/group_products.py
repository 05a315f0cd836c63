"""Products of matrices whose rows, or what is summed over, are in groups: each group has a matrix of its own.

A program finds its group from how many tiles each has.
"""

import triton
import triton.language as tl
from blocks.matmul import matmul_tile, tile_product
from blocks.offsets import integer_values, integers, stride_arguments, stride_values


@triton.jit
def group_bounds(offs_ptr, stride, group, mask, most):
    """Where groups start and end."""
    place = group.to(tl.int64) * stride
    start = tl.load(offs_ptr + place - stride, mask=mask & (group > 0), other=0)
    end = tl.load(offs_ptr + place, mask=mask, other=0)
    return tl.minimum(tl.maximum(start, 0), most), tl.minimum(tl.maximum(end, 0), most)


@triton.jit
def group_of_tile(offs_ptr, stride, groups, tile, most, BLOCK: tl.constexpr, LANES: tl.constexpr):
    """Of a tile of rows: its group, its first row and the end of the group, which is 0 where there is no such tile."""
    before, group, first, last = tile * 0, tile * 0, tile * 0, tile * 0
    for at in range(0, groups, LANES):
        g = at + tl.arange(0, LANES)
        start, end = group_bounds(offs_ptr, stride, g, g < groups, most)
        tiles = tl.cdiv(tl.maximum(end - start, 0), BLOCK)
        place = tile - (before + tl.cumsum(tiles, 0) - tiles)
        here = (place >= 0) & (place < tiles)
        group += tl.sum(tl.where(here, g, 0), 0)
        first += tl.sum(tl.where(here, start + place * BLOCK, 0), 0)
        last += tl.sum(tl.where(here, end, 0), 0)
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
    """A tile of the output. DEEP: groups are of what is summed over, and there is a matrix for each; else of rows.
    INSIDE: no tile reaches beyond the columns.

    strides: of a by row and column, of b and the output by group, row and column.
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
    a_ptr += tl.minimum(rows, M - 1)[:, None] * a_stride[0]
    wrapped = cols if INSIDE else cols % N  # by % what is contiguous stays so: 16 bytes are read at a time
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
    """a: [M, K]. b: [groups, K, N] and out: [M, N]; or b: [K, N] and out: [groups, M, N]. A platform may have another
    way."""
    launch_group_tiles(a, b, out, offs, half)


def launch_group_tiles(a, b, out, offs, half):
    """The same, a program a tile."""
    (M, K), N, groups, deep = a.shape, b.shape[-1], offs.shape[0], b.dim() == 2
    height = M if deep else triton.cdiv(M, groups)
    tile = matmul_tile(groups, height, N, K, half, (128, 128) if half else (64, 64))
    small = max(a.numel(), b.numel(), out.numel()) < 4096
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
