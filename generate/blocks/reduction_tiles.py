"""Tile sizes and warps of reductions."""

import triton
from blocks.limits import PROCESSORS
from blocks.offsets import TINY_TENSOR, small_tile

COLUMN_PROGRAMS = 512  # programs from which on columns alone fill the device: almost four for each processor

# Outputs from which on short columns alone fill the device: a warp has 128 fp32 columns, so 256 programs with one
# warp are almost two for each processor.
MANY_COLUMNS = 32768


def reduction_tile(m, n, stride, reduced_stride, elements, multiple, size):
    """Return BLOCK_M, BLOCK_N and warps for a tile with this many elements, each `size` bytes.

    The longer tile side runs along the smaller innermost stride. With many columns, each thread gets its own
    columns, 16 bytes per row, and a program gets as few warps as still leave 8 per processor. Exchange
    between warps takes most time in short sums.
    """
    if m * n < TINY_TENSOR:
        tile = small_tile(n, 2048)
    elif m > 1 and n > 1 and stride < reduced_stride:
        columns, thread_elements = max(16 // size, 1), 16 if multiple else 32
        programs = m // (32 * columns)
        if (n <= 64 and m >= MANY_COLUMNS) or (programs >= COLUMN_PROGRAMS and not multiple):
            warps = 1 if n <= 64 or programs > 8 * PROCESSORS else 2 if programs > 4 * PROCESSORS else 4
            return 32 * columns, min(triton.next_power_of_2(n), max(thread_elements // columns, 1) * warps), warps
        BLOCK_M = min(triton.next_power_of_2(m), 128)
        tile = BLOCK_M, min(triton.next_power_of_2(n), elements // BLOCK_M)
    else:
        BLOCK_N = min(triton.next_power_of_2(max(n, 1)), elements)
        tile = min(triton.next_power_of_2(max(m, 1)), elements // BLOCK_N), BLOCK_N
    return *tile, reduction_warps(m * n, tile, multiple)


def reduction_warps(elements, tile, multiple):
    """Return a program's warp count for its tile."""
    few = tile[0] * tile[1] <= 1024 or (tile[0] > 1 and multiple)
    return 4 if elements >= TINY_TENSOR and few else 8
