"""L D L' factors of symmetric, possibly indefinite matrices, and the solution of systems with them.

D has blocks of one or two rows, chosen as by Bunch and Kaufman (Math. Comp. 31 (1977), 163; Golub and Van
Loan, Matrix Computations, 2013, 4.4). Factors and pivots have LAPACK's layout. A positive pivot p at k means
a block with one row, and that row and column k were exchanged with p - 1. Two equal negative pivots at k and
k + 1 mean a block with two rows, and that k + 1 was exchanged with -p - 1. Columns left of k were not
exchanged. A program takes one matrix, or right-hand-side columns for one matrix.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer_values, integers, plain, plain_value, strided, walk
from blocks.substitution import column_major, square_rows
from blocks.triangles import triangle


@triton.jit
def largest_beside(x_ptr, i, first, n, stride, LONG: tl.constexpr):
    """Return the largest off-diagonal magnitude in row i from column `first` on, and its first column.

    The matrix is symmetric and only the lower triangle is read.
    """
    best = tl.abs(tl.load(x_ptr + i * (stride + 1))) * 0
    column = i
    for start in range(first, n, LONG):
        cols = start + tl.arange(0, LONG).to(tl.int64)
        mask = (cols < n) & (cols != i)
        offset = tl.where(cols < i, i + cols * stride, cols + i * stride)
        size = tl.where(mask, tl.abs(tl.load(x_ptr + offset, mask=mask, other=0.0)), -1.0)
        top = tl.max(size, 0)
        candidate = tl.min(tl.where(size == top, cols, n), 0)
        column = tl.where(top > best, candidate, column)
        best = tl.where(top > best, top, best)
    return best, column


@triton.jit
def pivot_of(x_ptr, k, n, stride, LONG: tl.constexpr):
    """Return (row to exchange, True for a block with two rows, True if the column has nothing to eliminate with).

    The row is exchanged with k, or with k + 1 for a block with two rows. The constant is (1 + sqrt(17)) / 8,
    which bounds element growth.
    """
    size = tl.abs(tl.load(x_ptr + k * (stride + 1)))
    column_largest, row = largest_beside(x_ptr, k, k, n, stride, LONG)
    nothing = ((size == 0) & (column_largest == 0)) | (size != size)
    enough = nothing | (size >= 0.6403882032022076 * column_largest)
    pair = k < 0  # False
    swap_row = k
    if not enough:
        its, _ = largest_beside(x_ptr, row, k, n, stride, LONG)
        middle = tl.abs(tl.load(x_ptr + row * (stride + 1)))
        if size < 0.6403882032022076 * column_largest * (column_largest / its):
            swap_row = row
            pair = middle < 0.6403882032022076 * its
    return swap_row, pair, nothing


@triton.jit
def exchange_both(x_ptr, i, j, first, n, stride, LONG: tl.constexpr):
    """Exchange rows and columns i < j in the lower triangle, from `first` on."""
    for start in range(first, n, LONG):
        k = start + tl.arange(0, LONG).to(tl.int64)
        mask = (k < n) & (k != j)
        # at k = i the diagonal elements are exchanged; element (j, i) is its own mirror image and stays
        i_pointers = x_ptr + tl.where(k < i, i + k * stride, k + i * stride)
        j_pointers = x_ptr + tl.where(k == i, j + j * stride, tl.where(k < j, j + k * stride, k + j * stride))
        x, y = tl.load(i_pointers, mask=mask), tl.load(j_pointers, mask=mask)
        tl.store(i_pointers, y, mask=mask)
        tl.store(j_pointers, x, mask=mask)


@triton.jit
def weights_of(x, y, pivot):
    """Multiply columns x and y by the inverse block; `pivot` is (c, p, q, cross) for one or two rows."""
    c, p, q, cross = pivot
    return c * (p * x - cross * y), c * (q * y - cross * x)


@triton.jit
def eliminate_both(x_ptr, k, pair, n, stride, BLOCK: tl.constexpr):
    """Subtract products with column k, or k and k + 1, from the lower triangle behind them, then scale them to L."""
    begin = k + 1 + pair.to(tl.int64)
    diagonal = tl.load(x_ptr + k * (stride + 1))
    beside = tl.load(x_ptr + k * (stride + 1) + 1, mask=pair, other=1.0)
    last = tl.load(x_ptr + (k + 1) * (stride + 1), mask=pair, other=1.0)
    q, p = diagonal / beside, last / beside
    cross = pair.to(diagonal.dtype)
    c = tl.where(pair, 1 / (p * q - 1) / beside, 1 / diagonal)
    pivot = c, tl.where(pair, p, 1.0).to(diagonal.dtype), tl.where(pair, q, 0.0).to(diagonal.dtype), cross
    for right in range(begin, n, BLOCK):
        cols = right + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + cols + k * stride, mask=cols < n, other=0.0)
        y = tl.load(x_ptr + cols + (k + 1) * stride, mask=(cols < n) & pair, other=0.0)
        v, w = weights_of(x, y, pivot)
        for down in range(right, n, BLOCK):
            rows = down + tl.arange(0, BLOCK).to(tl.int64)
            x = tl.load(x_ptr + rows + k * stride, mask=rows < n, other=0.0)
            y = tl.load(x_ptr + rows + (k + 1) * stride, mask=(rows < n) & pair, other=0.0)
            pointers = x_ptr + rows[:, None] + cols[None, :] * stride
            mask = (rows < n)[:, None] & (cols < n)[None, :] & (rows[:, None] >= cols[None, :])
            a = tl.load(pointers, mask=mask, other=0.0)
            tl.store(pointers, a - x[:, None] * v[None, :] - y[:, None] * w[None, :], mask=mask)
    tl.debug_barrier()  # all tiles need the columns as they were, so they are scaled last
    for right in range(begin, n, BLOCK):
        cols = right + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + cols + k * stride, mask=cols < n, other=0.0)
        y = tl.load(x_ptr + cols + (k + 1) * stride, mask=(cols < n) & pair, other=0.0)
        v, w = weights_of(x, y, pivot)
        tl.debug_barrier()  # several threads may load the same element, and one of them stores it
        tl.store(x_ptr + cols + k * stride, v, mask=cols < n)
        tl.store(x_ptr + cols + (k + 1) * stride, w, mask=(cols < n) & pair)


@triton.jit
def ldl_kernel(x_ptr, pivots_ptr, info_ptr, n, BLOCK: tl.constexpr, LONG: tl.constexpr):
    """Factor the lower triangle in place, one matrix per program.

    Args:
        x_ptr: [batch, n, n] with contiguous columns, lower triangle, updated.
        pivots_ptr: [batch, n], int32, written.
        info_ptr: [batch], int32, the first block that is 0 or NaN, counted from 1, or 0, written.
        n: rows per matrix, encoded by `plain`.
        BLOCK: rows and columns per tile in the elimination.
        LONG: elements per step along a row or column.
    """
    matrix = tl.program_id(0).to(tl.int64)
    n = plain_value(n).to(tl.int64)
    x_ptr += matrix * n * n
    pivots_ptr += matrix * n
    info = tl.zeros([], tl.int32)
    k = tl.zeros([], tl.int64)
    while k < n:
        row, pair, nothing = pivot_of(x_ptr, k, n, n, LONG)
        tl.debug_barrier()  # all threads have read the matrix before any of them exchanges rows
        end = k + pair.to(tl.int64)
        if row != end:
            exchange_both(x_ptr, end, row, k, n, n, LONG)
            tl.debug_barrier()
        if nothing:
            info = tl.where(info == 0, k + 1, info).to(tl.int32)
        else:
            eliminate_both(x_ptr, k, pair, n, n, BLOCK)
            tl.debug_barrier()
        number = tl.where(pair, -row - 1, row + 1).to(tl.int32)
        tl.store(pivots_ptr + k, number)
        tl.store(pivots_ptr + end, number)
        k = end + 1
    tl.store(info_ptr + matrix, info)


def symmetric_factors(A, name):
    """Return (L and D, pivots, info) for matrices; only the lower triangle is read.

    info is the number of the first block that is 0 or NaN, or 0.
    """
    n = square_rows(A, name)
    out = triangle(A, column_major(A.shape, A), 0, False)
    pivots = torch.empty(A.shape[:-1], dtype=torch.int32, device=A.device)
    info = torch.empty(A.shape[:-2], dtype=torch.int32, device=A.device)
    if info.numel():
        rows = max(triton.next_power_of_2(n), 16)
        ldl_kernel[(info.numel(),)](
            out, pivots, info, plain(n), BLOCK=min(rows, 32), LONG=min(max(rows, 64), 1024), num_warps=4
        )
    return out, pivots, info


@triton.jit
def exchange_solved(out_ptr, i, j, n, cols, mask, stride):
    """Exchange rows i and j in some columns, if j is another row."""
    if (j != i) & (j >= 0) & (j < n):
        one, other = out_ptr + i * stride[0] + cols * stride[1], out_ptr + j * stride[0] + cols * stride[1]
        x, y = tl.load(one, mask=mask), tl.load(other, mask=mask)
        tl.debug_barrier()  # several threads may load the same element, and one of them stores it
        tl.store(one, y, mask=mask)
        tl.store(other, x, mask=mask)
        tl.debug_barrier()


@triton.jit
def less_products(out_ptr, t_ptr, i, first, n, cols, mask, t_stride, stride, BLOCK: tl.constexpr):
    """Subtract from row i the products with rows from `first` on and column i in the factors."""
    if first < n:
        row = out_ptr + i * stride[0] + cols * stride[1]
        total = tl.load(row, mask=mask, other=0.0)  # row i stays in registers, and is stored once
        for start in range(first, n, BLOCK):
            rows = start + tl.arange(0, BLOCK).to(tl.int64)
            t = tl.load(t_ptr + rows * t_stride[0] + i * t_stride[1], mask=rows < n, other=0.0)
            pointers = out_ptr + rows[:, None] * stride[0] + cols[None, :] * stride[1]
            x = tl.load(pointers, mask=(rows < n)[:, None] & mask[None, :], other=0.0)
            total -= tl.sum(t[:, None] * x, 0)
        tl.debug_barrier()
        tl.store(row, total, mask=mask)
        tl.debug_barrier()


@triton.jit
def solved_down(out_ptr, t_ptr, pivots_ptr, n, cols, mask, t_stride, stride, BLOCK: tl.constexpr):
    """Solve columns with L, then with D."""
    k = tl.zeros([], tl.int64)
    while k < n:
        number = tl.load(pivots_ptr + k * t_stride[2]).to(tl.int64)
        pair = (number < 0) & (k + 1 < n)
        end = k + pair.to(tl.int64)
        exchange_solved(out_ptr, end, tl.abs(number) - 1, n, cols, mask, stride)
        x = tl.load(out_ptr + k * stride[0] + cols * stride[1], mask=mask, other=0.0)
        y = tl.load(out_ptr + end * stride[0] + cols * stride[1], mask=mask & pair, other=0.0)
        for start in range(end + 1, n, BLOCK):
            rows = start + tl.arange(0, BLOCK).to(tl.int64)
            t = tl.load(t_ptr + rows * t_stride[0] + k * t_stride[1], mask=rows < n, other=0.0)
            u = tl.load(t_ptr + rows * t_stride[0] + end * t_stride[1], mask=(rows < n) & pair, other=0.0)
            pointers = out_ptr + rows[:, None] * stride[0] + cols[None, :] * stride[1]
            inside = (rows < n)[:, None] & mask[None, :]
            b = tl.load(pointers, mask=inside, other=0.0)
            tl.store(pointers, b - t[:, None] * x[None, :] - u[:, None] * y[None, :], mask=inside)
        step = t_stride[0] + t_stride[1]
        diagonal, last = tl.load(t_ptr + k * step), tl.load(t_ptr + end * step)
        beside = tl.load(t_ptr + k * step + t_stride[0], mask=pair, other=1.0)
        # the block's inverse by Cramer's rule, scaled by the off-diagonal element
        p, q = diagonal / beside, last / beside
        x, y = x / tl.where(pair, beside, diagonal), y / beside
        scale = tl.where(pair, p * q - 1, 1.0)
        tl.debug_barrier()
        tl.store(out_ptr + k * stride[0] + cols * stride[1], tl.where(pair, (q * x - y) / scale, x), mask=mask)
        tl.store(out_ptr + end * stride[0] + cols * stride[1], (p * y - x) / scale, mask=mask & pair)
        tl.debug_barrier()
        k = end + 1


@triton.jit
def solved_up(out_ptr, t_ptr, pivots_ptr, n, cols, mask, t_stride, stride, BLOCK: tl.constexpr):
    """Solve columns with the transpose of L."""
    k = n - 1
    while k >= 0:
        number = tl.load(pivots_ptr + k * t_stride[2]).to(tl.int64)
        pair = (number < 0) & (k > 0)
        less_products(out_ptr, t_ptr, k, k + 1, n, cols, mask, t_stride, stride, BLOCK)
        begin = k - pair.to(tl.int64)
        if pair:
            less_products(out_ptr, t_ptr, begin, k + 1, n, cols, mask, t_stride, stride, BLOCK)
        exchange_solved(out_ptr, k, tl.abs(number) - 1, n, cols, mask, stride)
        k = begin - 1


@triton.jit
def symmetric_kernel(
    t_ptr, pivots_ptr, b_ptr, out_ptr, n, m, batch, strides, PLAIN: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Solve systems with the factors from `ldl_kernel`, COLS right-hand-side columns for one matrix per program.

    Args:
        t_ptr: [batch, n, n], L and D, read.
        pivots_ptr: [batch, n], int32, read.
        b_ptr: [batch, n, m], right-hand sides, read.
        out_ptr: [batch, n, m], solutions, written and updated.
        n: rows per matrix, encoded by `plain`.
        m: right-hand-side columns, encoded by `plain`.
        batch: walk over the batch dimensions, in the order factors, pivots, b, out.
        strides: (row, column, pivot) strides for the factors, then (row, column) for b and for out.
        PLAIN: the other integers are encoded by `plain`.
        ROWS: rows per step.
        COLS: right-hand-side columns per program.
    """
    n, m = plain_value(n).to(tl.int64), plain_value(m)
    across = tl.cdiv(m, COLS)
    matrix = (tl.program_id(0) // across).to(tl.int64)
    cols = (tl.program_id(0) % across).to(tl.int64) * COLS + tl.arange(0, COLS)
    mask = cols < m
    t_ptr += strided(matrix, batch[0], batch[1][0], False, PLAIN)
    pivots_ptr += strided(matrix, batch[0], batch[1][1], False, PLAIN)
    b_ptr += strided(matrix, batch[0], batch[1][2], False, PLAIN)
    out_ptr += strided(matrix, batch[0], batch[1][3], False, PLAIN)
    t_stride, b_stride = integer_values(strides[0], PLAIN), integer_values(strides[1], PLAIN)
    stride = integer_values(strides[2], PLAIN)
    for start in range(0, n, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        inside = (rows < n)[:, None] & mask[None, :]
        x = tl.load(b_ptr + rows[:, None] * b_stride[0] + cols[None, :] * b_stride[1], mask=inside, other=0.0)
        tl.store(out_ptr + rows[:, None] * stride[0] + cols[None, :] * stride[1], x, mask=inside)
    tl.debug_barrier()
    solved_down(out_ptr, t_ptr, pivots_ptr, n, cols, mask, t_stride, stride, ROWS)
    solved_up(out_ptr, t_ptr, pivots_ptr, n, cols, mask, t_stride, stride, ROWS)


def solve_symmetric(factors, pivots, b, out):
    """Solve the systems with these factors for b, and return `out`; all tensors have the same batch dimensions."""
    if not out.numel():
        return out
    n, m = out.shape[-2:]
    batch = math.prod(out.shape[:-2])
    PLAIN = batch * n * max(n, m) < SMALL_TENSOR
    ROWS, COLS = [min(max(triton.next_power_of_2(size), 16), 64) for size in (n, m)]
    corners = [factors.select(-1, 0).select(-1, 0), pivots.select(-1, 0)]
    corners += [x.select(-1, 0).select(-1, 0) for x in (b, out)]
    symmetric_kernel[(batch * triton.cdiv(m, COLS),)](
        factors,
        pivots,
        b,
        out,
        plain(n),
        plain(m),
        walk(corners, list(range(out.dim() - 2)), PLAIN),
        (
            integers((*factors.stride()[-2:], pivots.stride(-1)), PLAIN),
            integers(b.stride()[-2:], PLAIN),
            integers(out.stride()[-2:], PLAIN),
        ),
        PLAIN=PLAIN,
        ROWS=ROWS,
        COLS=COLS,
        num_warps=4,
    )
    return out
