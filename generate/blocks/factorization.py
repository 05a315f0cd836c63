"""LU factors of matrices by elimination with partial pivoting, and operations on them.

A program instance takes one matrix, WIDTH columns at a time. It eliminates column by column within these, then
subtracts the products with them from the columns to their right, tile by tile. Pivots follow LAPACK: row k was
exchanged with row pivots[k] - 1, the first one with the largest magnitude.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.elementwise import elementwise
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integers, plain, plain_value, strided, walk
from blocks.substitution import column_major, solve_triangles, solved_block
from blocks.truth import truth


@triton.jit
def pivot_row(column_ptr, first, m, BLOCK: tl.constexpr):
    """Return the first row from `first` on with the largest magnitude in a contiguous column.

    NaN is the largest if it is in row `first`, and is ignored elsewhere.
    """
    best = tl.abs(tl.load(column_ptr + first))
    pivot = first
    for start in range(first, m, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        size = tl.abs(tl.load(column_ptr + rows, mask=rows < m, other=-1.0))
        size = tl.where(rows < m, size, -1.0)
        top = tl.max(size, 0)
        block_row = tl.min(tl.where(size == top, rows, m), 0)
        pivot = tl.where(top > best, block_row, pivot)
        best = tl.where(top > best, top, best)
    return pivot


@triton.jit
def exchange_rows(x_ptr, i, j, n, stride, BLOCK: tl.constexpr):
    """Exchange the distinct rows i and j in a matrix whose columns are `stride` apart."""
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        one = tl.load(x_ptr + i + cols * stride, mask=cols < n)
        other = tl.load(x_ptr + j + cols * stride, mask=cols < n)
        tl.store(x_ptr + i + cols * stride, other, mask=cols < n)
        tl.store(x_ptr + j + cols * stride, one, mask=cols < n)


@triton.jit
def eliminate(x_ptr, k, last, m, stride, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Divide column k by its pivot, update the following columns before `last`, and return the pivot.

    The update subtracts the products with column k.
    """
    cols = k + 1 + tl.arange(0, WIDTH)
    pivot = tl.load(x_ptr + k + k * stride)
    above = tl.load(x_ptr + k + cols * stride, mask=cols < last, other=0.0)
    for start in range(k + 1, m, ROWS):
        rows = start + tl.arange(0, ROWS)
        x = tl.load(x_ptr + rows + k * stride, mask=rows < m, other=0.0)
        x = tl.where(pivot != 0, x / tl.where(pivot != 0, pivot, 1.0), x)
        tl.debug_barrier()  # threads with a copy of an element must load it before one stores it
        tl.store(x_ptr + rows + k * stride, x, mask=rows < m)
        pointers = x_ptr + rows[:, None] + cols[None, :] * stride
        mask = (rows < m)[:, None] & (cols < last)[None, :]
        y = tl.load(pointers, mask=mask, other=0.0)
        tl.store(pointers, y - x[:, None] * above[None, :], mask=mask)
    return pivot


@triton.jit
def take_products(x_ptr, start, width, m, n, stride, ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Update the columns to the right of `width` finished ones.

    Their upper part is solved with the finished triangle, then the products are subtracted below.
    """
    lanes = tl.arange(0, WIDTH)
    step = tl.full([], start, tl.int64)
    for right in range(start + width, n, BLOCK):
        cols = right + tl.arange(0, BLOCK).to(tl.int64)
        pointers = x_ptr + (start + lanes)[:, None] + cols[None, :] * stride
        mask = (lanes < width)[:, None] & (cols < n)[None, :]
        x = tl.load(pointers, mask=mask, other=0.0)
        tl.store(pointers, solved_block(x, x_ptr + step * (stride + 1), width, (1, stride), True), mask=mask)
        tl.debug_barrier()  # the products below read the solved rows, which other threads have stored
        for down in range(start + width, m, ROWS):
            rows = down + tl.arange(0, ROWS)
            below = x_ptr + rows[:, None] + cols[None, :] * stride
            inside = (rows < m)[:, None] & (cols < n)[None, :]
            y = tl.load(below, mask=inside, other=0.0)
            for k in range(start, start + width):
                left = tl.load(x_ptr + rows + k * stride, mask=rows < m, other=0.0)
                above = tl.load(x_ptr + k + cols * stride, mask=cols < n, other=0.0)
                y -= left[:, None] * above[None, :]
            tl.store(below, y, mask=inside)


@triton.jit
def lu_kernel(
    x_ptr, pivots_ptr, info_ptr, m, n, ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, LONG: tl.constexpr
):
    """Factor one matrix per program instance, in place.

    Barriers separate one step's stores from the next step's loads, which other threads execute.

    Args:
        x_ptr: [batch, m, n] column-major, read and written.
        pivots_ptr: [batch, min(m, n)] int32, written: 1-based rows.
        info_ptr: [batch] int32, written: the 1-based number of the first pivot that is 0, or 0.
        m: Rows of a matrix, encoded by `plain`.
        n: Columns of a matrix, encoded by `plain`.
        ROWS: Rows per step of an update.
        WIDTH: Columns per panel.
        BLOCK: Columns per step to the right of the panel.
        LONG: Elements per step of a pivot search or an exchange.
    """
    matrix = tl.program_id(0).to(tl.int64)
    m, n = plain_value(m), plain_value(n)
    stride = m.to(tl.int64)
    count = tl.minimum(m, n)
    x_ptr += matrix * stride * n
    info = tl.zeros([], tl.int32)
    for start in range(0, count, WIDTH):
        width = tl.minimum(WIDTH, count - start)
        for k in range(start, start + width):
            row = pivot_row(x_ptr + k * stride, k, m, LONG)
            tl.store(pivots_ptr + matrix * count + k, (row + 1).to(tl.int32))
            if row != k:
                exchange_rows(x_ptr, k, row, n, stride, LONG)
                tl.debug_barrier()  # `eliminate` reads the exchanged rows
            pivot = eliminate(x_ptr, k, start + width, m, stride, ROWS, WIDTH)
            info = tl.where((info == 0) & (pivot == 0), k + 1, info).to(tl.int32)
            tl.debug_barrier()  # the next pivot search reads the updated column
        take_products(x_ptr, start, width, m, n, stride, ROWS, WIDTH, BLOCK)
        tl.debug_barrier()
    tl.store(info_ptr + matrix, info)


def check_info(info, name):
    """Raise NotImplementedError if an info is not 0.

    The call then goes back to PyTorch, whose error message names the matrix.
    """
    if info.numel() and truth("max", info, None, False).item():
        raise NotImplementedError(f"{name}: a matrix is singular or cannot be factored")


def lu_factors(A, name):
    """Return (LU, pivots, info) of fp32 or fp64 matrices; raise RuntimeError for any other input."""
    if A.dim() < 2 or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"{name}: expected float32 or float64 matrices, got {tuple(A.shape)} {A.dtype}")
    m, n = A.shape[-2:]
    out = copied(A, column_major(A.shape, A))
    pivots = torch.empty((*A.shape[:-2], min(m, n)), dtype=torch.int32, device=A.device)
    info = torch.empty(A.shape[:-2], dtype=torch.int32, device=A.device)
    if info.numel():
        ROWS = min(max(triton.next_power_of_2(m), 16), 64)
        LONG = min(max(triton.next_power_of_2(max(m, n)), 64), 1024)
        lu_kernel[(info.numel(),)](
            out, pivots, info, plain(m), plain(n), ROWS=ROWS, WIDTH=16, BLOCK=64, LONG=LONG, num_warps=4
        )
    return out, pivots, info


@triton.jit
def permutation_kernel(
    b_ptr,
    pivots_ptr,
    out_ptr,
    n,
    m,
    count,
    batch,
    strides,
    INVERSE: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Write rows of b, or the identity, exchanged by the pivots; INVERSE exchanges in the opposite order.

    Each program instance follows its rows through all exchanges, so that no permutation is stored.

    Args:
        b_ptr: [batch, n, m] or None for the identity, read.
        pivots_ptr: [batch, count], read.
        out_ptr: [batch, n, m], written.
        n: Rows of b, encoded by `plain`.
        m: Columns of b, encoded by `plain`.
        count: Pivots per matrix, encoded by `plain`.
        batch: `walk` over the batch dimensions of pivots, b and out.
        strides: Strides for pivots (1), b (2) and out (2), encoded by `plain`.
        INVERSE: True to exchange from the first pivot to the last, False from the last to the first.
        PLAIN: True if the integers in `batch` are encoded by `plain`.
        BLOCK_M: Rows per program instance.
        BLOCK_N: Columns per program instance.
    """
    n, m, count = plain_value(n), plain_value(m), plain_value(count)
    down, across = tl.cdiv(n, BLOCK_M), tl.cdiv(m, BLOCK_N)
    matrix = (tl.program_id(0) // (down * across)).to(tl.int64)
    index = tl.program_id(0) % (down * across)
    rows = (index // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (index % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    pivots_ptr += strided(matrix, batch[0], batch[1][0], False, PLAIN)
    source = rows
    for i in range(0, count):
        k = i if INVERSE else count - 1 - i
        other = tl.load(pivots_ptr + k * plain_value(strides[0])).to(tl.int64) - 1
        source = tl.where(source == k, other, tl.where(source == other, k, source))
    mask = (rows < n)[:, None] & (cols < m)[None, :]
    out_type = out_ptr.dtype.element_ty
    if b_ptr is None:
        x = (source[:, None] == cols[None, :]).to(out_type)
    else:
        b_ptr += strided(matrix, batch[0], batch[1][1], False, PLAIN)
        inside = mask & ((source >= 0) & (source < n))[:, None]
        read = source[:, None] * plain_value(strides[1]) + cols[None, :] * plain_value(strides[2])
        x = tl.load(b_ptr + read, mask=inside, other=0.0)
    out_ptr += strided(matrix, batch[0], batch[1][2], False, PLAIN)
    write = rows[:, None] * plain_value(strides[3]) + cols[None, :] * plain_value(strides[4])
    tl.store(out_ptr + write, x, mask=mask)


def permuted(b, pivots, out, inverse=False):
    """Fill `out` with the exchanged rows of b, or the identity if b is None, and return it.

    All tensors have the same batch shape.
    """
    if not out.numel():
        return out
    n, m = out.shape[-2:]
    batch = math.prod(out.shape[:-2])
    like = out if b is None else b
    corners = [x.select(-1, 0).select(-1, 0) for x in (out, like, out)]
    if pivots.numel():
        corners[0] = pivots.select(-1, 0)
    BLOCK_M, BLOCK_N = 32, min(max(triton.next_power_of_2(m), 16), 64)
    PLAIN = batch * n * m < SMALL_TENSOR
    permutation_kernel[(batch * triton.cdiv(n, BLOCK_M) * triton.cdiv(m, BLOCK_N),)](
        b,
        pivots,
        out,
        plain(n),
        plain(m),
        plain(pivots.shape[-1]),
        walk(corners, list(range(out.dim() - 2)), PLAIN),
        integers((pivots.stride(-1), *like.stride()[-2:], *out.stride()[-2:]), True),
        INVERSE=inverse,
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
    )
    return out


def solve_factored(factors, pivots, b, out, adjoint):
    """Solve A @ out = b, or with A's transpose (`adjoint`), from the LU factors of A, and return `out`.

    All tensors have the same batch shape.
    """
    if not adjoint:
        x = solve_triangles(factors, permuted(b, pivots, out), out, False, True)
        return solve_triangles(factors, x, out, True, False)
    x = column_major(b.shape, b)
    solve_triangles(factors.mT, b, x, False, False)
    solve_triangles(factors.mT, x, x, True, True)
    return permuted(x, pivots, out, True)


@triton.jit
def right_of_diagonal(start, BLOCK: tl.constexpr, rows, columns):
    """Return each element's distance to the right of the diagonal."""
    i = start + tl.arange(0, BLOCK)
    return i % columns - i // columns % rows


@triton.jit
def unit_lower(distance, x):
    """Return x below the diagonal, 1 on it, and 0 above."""
    return tl.where(distance < 0, x, (distance == 0).to(x.dtype))


@triton.jit
def upper_part(distance, x):
    """Return x on and above the diagonal, and 0 below."""
    return tl.where(distance >= 0, x, tl.zeros_like(x))


def unpacked(factors):
    """Return (L, U) from factors that share one matrix."""
    (m, n), kind = factors.shape[-2:], {"dtype": factors.dtype, "device": factors.device}
    count = min(m, n)
    lower = torch.empty((*factors.shape[:-2], m, count), **kind)
    elementwise(unit_lower, factors.narrow(-1, 0, count), source=(right_of_diagonal, m, count), out=lower)
    upper = torch.empty((*factors.shape[:-2], count, n), **kind)
    return lower, elementwise(upper_part, factors.narrow(-2, 0, count), source=(right_of_diagonal, count, n), out=upper)


def permutation(pivots, rows, dtype):
    """Return the matrices [..., rows, rows] that, multiplied by the factors, restore the factored matrices."""
    out = torch.empty((*pivots.shape[:-1], rows, rows), dtype=dtype, device=pivots.device)
    permuted(None, pivots, out.mT)
    return out
