"""Triangular parts of matrices; elements outside are zero and not read."""

import math

import triton
import triton.language as tl
from blocks.indexing import tile_offset
from blocks.limits import SMALL_TENSOR
from blocks.offsets import TINY_TENSOR, integer, integer_value, integers, merge, small_tile


@triton.jit
def triangle_kernel(
    x_ptr,
    out_ptr,
    m,
    n,
    rows,
    diagonal,
    shape,
    stride,
    out_stride,
    UPPER: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Copy the triangles' part of one [BLOCK_M, BLOCK_N] tile, and store zeros outside.

    Args:
        x_ptr: m rows with n columns, read inside the triangles.
        out_ptr: m rows with n columns, written.
        m: rows in all matrices, encoded by `integer`, as are all integers.
        n: columns.
        rows: rows per matrix.
        diagonal: columns from the main diagonal to the triangle's edge; negative below the main diagonal.
        shape: merged sizes of all dimensions but the last.
        stride: strides of x along these dimensions, then along a row.
        out_stride: the same for the result.
        UPPER: True for elements at or above the diagonal, False for those at or below it.
        PLAIN: integers are encoded by `plain`.
        BLOCK_M: rows per tile.
        BLOCK_N: columns per tile.
    """
    n = integer_value(n, PLAIN)
    across = tl.cdiv(n, BLOCK_N)
    row = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < integer_value(m, PLAIN))[:, None] & (col < n)[None, :]
    distance = col[None, :] - (row % integer_value(rows, PLAIN))[:, None]
    diagonal = integer_value(diagonal, PLAIN)
    in_triangle = (distance >= diagonal) if UPPER else (distance <= diagonal)
    x = tl.load(x_ptr + tile_offset(row, col, shape, stride, PLAIN), mask=mask & in_triangle, other=0)
    x = tl.where(in_triangle, x, tl.zeros_like(x))
    tl.store(out_ptr + tile_offset(row, col, shape, out_stride, PLAIN), x, mask=mask)


def triangle(x, out, diagonal, upper):
    """Fill `out` with the elements of x at or above (`upper`), or at or below, a diagonal, and return it.

    `diagonal` counts columns to the right of the main diagonal.
    """
    if not out.numel():
        return out
    rows, n = x.shape[-2:]
    m = math.prod(x.shape[:-1])
    shape, (stride, out_stride) = merge(x.shape[:-1], [x.stride()[:-1], out.stride()[:-1]])
    BLOCK_M, BLOCK_N = small_tile(n, 1024)
    if m * n >= TINY_TENSOR:
        BLOCK_N = min(triton.next_power_of_2(n), 1024)
        BLOCK_M = min(triton.next_power_of_2(m), 2048 // BLOCK_N)
    PLAIN = m * n < SMALL_TENSOR
    triangle_kernel[(triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)](
        x,
        out,
        integer(m, PLAIN),
        integer(n, PLAIN),
        integer(rows, PLAIN),
        integer(max(min(diagonal, n), -rows), PLAIN),
        integers(shape or (m,), PLAIN),
        integers((*stride, x.stride(-1)), PLAIN),
        integers((*out_stride, out.stride(-1)), PLAIN),
        UPPER=upper,
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=max(1, min(BLOCK_M * BLOCK_N // 256, 8)),
    )
    return out
