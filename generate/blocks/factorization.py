"""Factors of matrices by elimination with partial pivoting, and what is made of them.

A program takes a matrix, WIDTH columns at a time: it eliminates in these, column by column, then takes products with
them away from the columns to their right, a tile after the other. Pivots are LAPACK's: row k was exchanged with row
pivots[k] - 1, the first of the largest.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.elementwise import elementwise
from blocks.offsets import integers, plain, plain_value, strided, walk
from blocks.substitution import column_major, solve_triangles, solved_block
from blocks.truth import truth


@triton.jit
def pivot_row(column_ptr, first, m, BLOCK: tl.constexpr):
    """The first of the rows from `first` on in which a contiguous column is largest. NaN is that in the first of them,
    and else nowhere."""
    best = tl.abs(tl.load(column_ptr + first))
    found = first
    for start in range(first, m, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        size = tl.abs(tl.load(column_ptr + rows, mask=rows < m, other=-1.0))
        size = tl.where(rows < m, size, -1.0)
        top = tl.max(size, 0)
        here = tl.min(tl.where(size == top, rows, m), 0)
        found = tl.where(top > best, here, found)
        best = tl.where(top > best, top, best)
    return found


@triton.jit
def exchange_rows(x_ptr, i, j, n, stride, BLOCK: tl.constexpr):
    """Rows i and j, which are not the same, of a matrix whose columns lie `stride` apart."""
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        one = tl.load(x_ptr + i + cols * stride, mask=cols < n)
        other = tl.load(x_ptr + j + cols * stride, mask=cols < n)
        tl.store(x_ptr + i + cols * stride, other, mask=cols < n)
        tl.store(x_ptr + j + cols * stride, one, mask=cols < n)


@triton.jit
def eliminate(x_ptr, k, last, m, stride, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Column k divided by its pivot, and products with it taken away from the next ones before `last`."""
    cols = k + 1 + tl.arange(0, WIDTH)
    pivot = tl.load(x_ptr + k + k * stride)
    above = tl.load(x_ptr + k + cols * stride, mask=cols < last, other=0.0)
    for start in range(k + 1, m, ROWS):
        rows = start + tl.arange(0, ROWS)
        x = tl.load(x_ptr + rows + k * stride, mask=rows < m, other=0.0)
        x = tl.where(pivot != 0, x / tl.where(pivot != 0, pivot, 1.0), x)
        tl.debug_barrier()  # several threads may have loaded an element, of which one stores it
        tl.store(x_ptr + rows + k * stride, x, mask=rows < m)
        place = x_ptr + rows[:, None] + cols[None, :] * stride
        mask = (rows < m)[:, None] & (cols < last)[None, :]
        y = tl.load(place, mask=mask, other=0.0)
        tl.store(place, y - x[:, None] * above[None, :], mask=mask)
    return pivot


@triton.jit
def take_products(x_ptr, start, width, m, n, stride, ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Columns to the right of `width` ones that are done: solved with their triangle, then less their products."""
    lanes = tl.arange(0, WIDTH)
    step = tl.full([], start, tl.int64)
    for right in range(start + width, n, BLOCK):
        cols = right + tl.arange(0, BLOCK).to(tl.int64)
        place = x_ptr + (start + lanes)[:, None] + cols[None, :] * stride
        mask = (lanes < width)[:, None] & (cols < n)[None, :]
        x = tl.load(place, mask=mask, other=0.0)
        tl.store(place, solved_block(x, x_ptr + step * (stride + 1), width, (1, stride), True), mask=mask)
        tl.debug_barrier()
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
    which = tl.program_id(0).to(tl.int64)
    m, n = plain_value(m), plain_value(n)
    stride = m.to(tl.int64)
    count = tl.minimum(m, n)
    x_ptr += which * stride * n
    info = tl.zeros([], tl.int32)
    for start in range(0, count, WIDTH):
        width = tl.minimum(WIDTH, count - start)
        for k in range(start, start + width):
            row = pivot_row(x_ptr + k * stride, k, m, LONG)
            tl.store(pivots_ptr + which * count + k, (row + 1).to(tl.int32))
            if row != k:
                exchange_rows(x_ptr, k, row, n, stride, LONG)
                tl.debug_barrier()
            pivot = eliminate(x_ptr, k, start + width, m, stride, ROWS, WIDTH)
            info = tl.where((info == 0) & (pivot == 0), k + 1, info).to(tl.int32)
            tl.debug_barrier()
        take_products(x_ptr, start, width, m, n, stride, ROWS, WIDTH, BLOCK)
        tl.debug_barrier()
    tl.store(info_ptr + which, info)


def check_info(info, name):
    """Hands the call back to PyTorch, whose error tells which matrix it was, where an info is not 0."""
    if info.numel() and truth("max", info, None, False).item():
        raise NotImplementedError(f"{name}: a matrix that cannot be factored, or is singular")


def lu_factors(A, name):
    """(LU, pivots, info) of matrices."""
    if A.dim() < 2 or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"{name}: {tuple(A.shape)} of {A.dtype}")
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
    """Rows of b, or of the identity, exchanged as the pivots say; INVERSE: in the opposite order."""
    n, m, count = plain_value(n), plain_value(m), plain_value(count)
    down, across = tl.cdiv(n, BLOCK_M), tl.cdiv(m, BLOCK_N)
    which = (tl.program_id(0) // (down * across)).to(tl.int64)
    index = tl.program_id(0) % (down * across)
    rows = (index // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (index % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    pivots_ptr += strided(which, batch[0], batch[1][0], False, PLAIN)
    source = rows
    for i in range(0, count):
        k = i if INVERSE else count - 1 - i
        other = tl.load(pivots_ptr + k * plain_value(strides[0])).to(tl.int64) - 1
        source = tl.where(source == k, other, tl.where(source == other, k, source))
    mask = (rows < n)[:, None] & (cols < m)[None, :]
    kind = out_ptr.dtype.element_ty
    if b_ptr is None:
        x = (source[:, None] == cols[None, :]).to(kind)
    else:
        b_ptr += strided(which, batch[0], batch[1][1], False, PLAIN)
        inside = mask & ((source >= 0) & (source < n))[:, None]
        place = source[:, None] * plain_value(strides[1]) + cols[None, :] * plain_value(strides[2])
        x = tl.load(b_ptr + place, mask=inside, other=0.0)
    out_ptr += strided(which, batch[0], batch[1][2], False, PLAIN)
    place = rows[:, None] * plain_value(strides[3]) + cols[None, :] * plain_value(strides[4])
    tl.store(out_ptr + place, x, mask=mask)


def permuted(b, pivots, out, inverse=False):
    """out, with the rows of b, or of the identity for None, exchanged. All are of one batch."""
    if not out.numel():
        return out
    n, m = out.shape[-2:]
    batch = math.prod(out.shape[:-2])
    like = out if b is None else b
    corners = [x.select(-1, 0).select(-1, 0) for x in (out, like, out)]
    if pivots.numel():
        corners[0] = pivots.select(-1, 0)
    BLOCK_M, BLOCK_N = 32, min(max(triton.next_power_of_2(m), 16), 64)
    PLAIN = batch * n * m < 65536
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
    """out, where the matrices with these factors, or their transposes, times it are b. All are of one batch."""
    if not adjoint:
        x = solve_triangles(factors, permuted(b, pivots, out), out, False, True)
        return solve_triangles(factors, x, out, True, False)
    x = column_major(b.shape, b)
    solve_triangles(factors.mT, b, x, False, False)
    solve_triangles(factors.mT, x, x, True, True)
    return permuted(x, pivots, out, True)


@triton.jit
def right_of_diagonal(start, BLOCK: tl.constexpr, rows, columns):
    """How far right of the diagonal an element is."""
    i = start + tl.arange(0, BLOCK)
    return i % columns - i // columns % rows


@triton.jit
def unit_lower(distance, x):
    return tl.where(distance < 0, x, (distance == 0).to(x.dtype))


@triton.jit
def upper_part(distance, x):
    return tl.where(distance >= 0, x, tl.zeros_like(x))


def unpacked(factors):
    """(L, U) of factors that lie in one matrix."""
    (m, n), kind = factors.shape[-2:], {"dtype": factors.dtype, "device": factors.device}
    count = min(m, n)
    lower = torch.empty((*factors.shape[:-2], m, count), **kind)
    elementwise(unit_lower, factors.narrow(-1, 0, count), source=(right_of_diagonal, m, count), out=lower)
    upper = torch.empty((*factors.shape[:-2], count, n), **kind)
    return lower, elementwise(upper_part, factors.narrow(-2, 0, count), source=(right_of_diagonal, count, n), out=upper)


def permutation(pivots, rows, dtype):
    """Matrices of this many rows that, times factors, are what was factored."""
    out = torch.empty((*pivots.shape[:-1], rows, rows), dtype=dtype, device=pivots.device)
    permuted(None, pivots, out.mT)
    return out
