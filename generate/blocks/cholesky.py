"""Cholesky factors of symmetric positive definite matrices.

A program instance factors one matrix, WIDTH columns at a time. Before it factors a block of columns, it
subtracts the products with the columns to their left (a left-looking algorithm).
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import plain, plain_value
from blocks.substitution import column_major, solve_triangles, solved_block, square_rows
from blocks.triangles import triangle


@triton.jit
def root_block(x, left):
    """Return the factor of a diagonal block with `left` valid rows, and the row with a non-positive pivot, or -1.

    From that row on the block is unchanged except for the pivot, as LAPACK leaves it.
    """
    lanes = tl.arange(0, x.shape[0])
    original = x
    failed = tl.full([], -1, tl.int32)
    for k in range(0, tl.minimum(left, x.shape[0])):
        column = tl.sum(tl.where((lanes == k)[None, :], x, 0.0), 1)
        pivot = tl.sum(tl.where(lanes == k, column, 0.0), 0)
        if failed < 0:  # no break in Triton: later steps do nothing
            if pivot > 0:
                scale = tl.sqrt_rn(pivot) if x.dtype == tl.float32 else tl.sqrt(pivot)
                column = tl.where(lanes == k, scale, column / scale)
                later = (lanes > k)[:, None] & (lanes > k)[None, :]
                x = tl.where(later, x - column[:, None] * column[None, :], x)
                x = tl.where((lanes >= k)[:, None] & (lanes == k)[None, :], column[:, None], x)
            else:
                failed = tl.zeros_like(failed) + k
                kept = (lanes < k)[None, :] | ((lanes == k)[:, None] & (lanes == k)[None, :])
                x = tl.where(kept, x, original)
    return x, failed


@triton.jit
def cholesky_kernel(x_ptr, info_ptr, n, row_stride, col_stride, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Factor one matrix per program instance, in place in its lower triangle.

    Barriers separate the stores of one block from the loads of the next, which other threads execute.

    Args:
        x_ptr: [batch, n, n], read and written.
        info_ptr: [batch] int32, written: the 1-based number of the first non-positive pivot, or 0.
        n: Rows, encoded by `plain`.
        row_stride: Stride between rows, encoded by `plain`. Swapped strides factor the upper triangle.
        col_stride: Stride between columns, encoded by `plain`.
        ROWS: Rows per step below the block.
        WIDTH: Columns per block.
    """
    matrix = tl.program_id(0).to(tl.int64)
    n = plain_value(n)
    x_ptr += matrix * n * n
    s, t = plain_value(row_stride).to(tl.int64), plain_value(col_stride).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    info = tl.zeros([], tl.int32)
    for start in range(0, n, WIDTH):
        if info == 0:
            cols = start + lanes
            tile_ptr = x_ptr + cols[:, None] * s + cols[None, :] * t
            mask = (cols < n)[:, None] & (lanes[:, None] >= lanes[None, :])
            x = tl.load(tile_ptr, mask=mask, other=0.0)
            for k in range(0, start):
                left = tl.load(x_ptr + cols * s + k * t, mask=cols < n, other=0.0)
                x -= left[:, None] * left[None, :]
            x, failed = root_block(x, n - start)
            tl.store(tile_ptr, x, mask=mask)
            tl.debug_barrier()  # the rows below load the factor of this block
            if failed >= 0:
                info = tl.zeros_like(info) + start + failed + 1
            else:
                for down in range(start + WIDTH, n, ROWS):
                    rows = down + tl.arange(0, ROWS)
                    below = x_ptr + cols[:, None] * t + rows[None, :] * s
                    y = tl.load(below, mask=(rows < n)[None, :], other=0.0)
                    for k in range(0, start):
                        left = tl.load(x_ptr + cols * s + k * t)
                        y -= left[:, None] * tl.load(x_ptr + rows * s + k * t, mask=rows < n, other=0.0)[None, :]
                    corner = x_ptr + start * (s + t)
                    tl.store(below, solved_block(y, corner, WIDTH, (s, t), False), mask=(rows < n)[None, :])
                tl.debug_barrier()
    tl.store(info_ptr + matrix, info)


def cholesky_factor(A, upper, name):
    """Return (factor, info) for the lower or upper factor; only the same triangle of A is read."""
    n = square_rows(A, name)
    out = triangle(A, column_major(A.shape, A), 0, upper)
    info = torch.empty(A.shape[:-2], dtype=torch.int32, device=A.device)
    strides = plain(1 if upper else n), plain(n if upper else 1)
    if info.numel():
        ROWS = min(max(triton.next_power_of_2(n), 16), 64)
        cholesky_kernel[(info.numel(),)](out, info, plain(n), *strides[::-1], ROWS=ROWS, WIDTH=16, num_warps=4)
    return out, info


def solve_rooted(rooted, b, out, upper):
    """Solve (factor @ factor^T) @ out = b into out; b is None for the identity."""
    lower = rooted.mT if upper else rooted
    return solve_triangles(lower.mT, solve_triangles(lower, b, out, False, False), out, True, False)
