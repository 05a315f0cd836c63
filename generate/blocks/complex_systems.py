"""Complex matrices: products, LU factors with partial pivoting, and systems of equations.

Numbers are interleaved (re, im) pairs. Pivots follow LAPACK: row k was exchanged with row pivots[k] - 1, the
first one with the largest |re| + |im|. A program instance factors one matrix, or solves for BLOCK right-hand
sides.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide, identity
from blocks.complex_numbers import complex_product, parts_of
from blocks.elementwise import elementwise
from blocks.factorization import permuted
from blocks.offsets import integers, plain, plain_value, strided, walk
from blocks.substitution import column_major, reversed_rows


@triton.jit
def complex_quotient(a, b, c, d):
    """Return (a + ib) / (c + id) by Smith's method (Algorithm 116, 1962), as in c10/util/complex.h.

    No part is squared, so that no square overflows. Division by 0 or infinity acts on the parts as on reals.
    """
    leads = tl.abs(c) >= tl.abs(d)
    large, small = tl.where(leads, c, d), tl.where(leads, d, c)
    ratio = divide(small, large)
    real = tl.where(leads, a + b * ratio, a * ratio + b)
    imaginary = tl.where(leads, b - a * ratio, b * ratio - a)
    zero = (c == 0) & (d == 0)
    length = tl.where(zero, tl.abs(c), large + small * ratio)
    return divide(tl.where(zero, a, real), length), divide(tl.where(zero, b, imaginary), length)


@triton.jit
def signed_sum(x, y, sign, other):
    """Return sign * x + other * y."""
    return sign * x + other * y


def signed_parts(x):
    """Return the parts of a complex tensor as views, and the sign of the imaginary one.

    The sign is -1 if the tensor has the conjugate bit, because the view then shows the stored part.
    """
    return (*parts_of(x.conj() if x.is_conj() else x), -1 if x.is_conj() else 1)


def complex_of_products(real, imaginaries, across, back, signs):
    """Return (a + s ib) @ (c + t id) from four real products.

    The products are a @ c (`real`), b @ d (`imaginaries`), a @ d (`across`) and b @ c (`back`); `signs` is (s,
    t).
    """
    out = torch.empty(real.shape, dtype=real.dtype.to_complex(), device=real.device)
    parts = parts_of(out)
    elementwise(signed_sum, real, imaginaries, 1, -signs[0] * signs[1], out=parts[0])
    elementwise(signed_sum, across, back, signs[1], signs[0], out=parts[1])
    return out


@triton.jit
def load_pair(ptr, mask):
    """Load the real and imaginary part at ptr, or 0."""
    return tl.load(ptr, mask=mask, other=0.0), tl.load(ptr + 1, mask=mask, other=0.0)


@triton.jit
def store_pair(ptr, real, imaginary, mask):
    """Store the real and imaginary part at ptr."""
    tl.store(ptr, real, mask=mask)
    tl.store(ptr + 1, imaginary, mask=mask)


@triton.jit
def complex_pivot(x_ptr, k, n, LONG: tl.constexpr):
    """Return the first row from k on with the largest |re| + |im| in a contiguous column."""
    top = tl.abs(tl.load(x_ptr + 2 * k)) + tl.abs(tl.load(x_ptr + 2 * k + 1))
    best_row = k
    for start in range(k, n, LONG):
        rows = start + tl.arange(0, LONG)
        real, imaginary = load_pair(x_ptr + 2 * rows, rows < n)
        # -1 is below every magnitude, so that rows beyond the matrix never win
        size = tl.where(rows < n, tl.abs(real) + tl.abs(imaginary), -1.0)
        best = tl.max(size, 0)
        here = tl.min(tl.where(size == best, rows, n), 0)
        # `>` and not `>=`: the first of equal rows wins, as in LAPACK
        best_row = tl.where(best > top, here, best_row)
        top = tl.where(best > top, best, top)
    return best_row


@triton.jit
def exchange_pairs(x_ptr, i, j, n, LONG: tl.constexpr):
    """Exchange rows i and j in a matrix with n contiguous columns.

    The barrier keeps a thread from storing before all threads have loaded.
    """
    for start in range(0, n, LONG):
        cols = start + tl.arange(0, LONG).to(tl.int64)
        first, second = x_ptr + 2 * (i + cols * n), x_ptr + 2 * (j + cols * n)
        a, b = load_pair(first, cols < n)
        c, d = load_pair(second, cols < n)
        tl.debug_barrier()
        store_pair(first, c, d, cols < n)
        store_pair(second, a, b, cols < n)


@triton.jit
def complex_eliminate(x_ptr, k, n, ROWS: tl.constexpr):
    """Divide column k by its pivot, and subtract its products with row k from the remaining submatrix.

    Return True if the pivot is not 0.
    """
    a, b = tl.load(x_ptr + 2 * k * (n + 1)), tl.load(x_ptr + 2 * k * (n + 1) + 1)
    is_nonzero = (a != 0) | (b != 0)
    a = tl.where(is_nonzero, a, 1.0)
    for start in range(k + 1, n, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        column = x_ptr + 2 * (rows + k * n)
        c, d = load_pair(column, rows < n)
        c, d = complex_quotient(c, d, a, b)
        tl.debug_barrier()  # threads with a copy of an element must load it before one stores it
        store_pair(column, c, d, rows < n)
        for right in range(k + 1, n, ROWS):
            cols = right + tl.arange(0, ROWS).to(tl.int64)
            p, q = load_pair(x_ptr + 2 * (k + cols * n), cols < n)
            lost, lost_too = complex_product(c[:, None], d[:, None], p[None, :], q[None, :])
            mask = (rows < n)[:, None] & (cols < n)[None, :]
            tile = x_ptr + 2 * (rows[:, None] + cols[None, :] * n)
            x, y = load_pair(tile, mask)
            store_pair(tile, x - lost, y - lost_too, mask)
    return is_nonzero


@triton.jit
def complex_lu_kernel(x_ptr, pivots_ptr, info_ptr, n, ROWS: tl.constexpr, LONG: tl.constexpr):
    """Factor one matrix per program instance, in place.

    Args:
        x_ptr: [batch, n, n] column-major complex, read and written.
        pivots_ptr: [batch, n] int32, written: 1-based rows.
        info_ptr: [batch] int32, written: the 1-based number of the first pivot that is 0, or 0.
        n: Rows, encoded by `plain`.
        ROWS: Rows and columns per step in the update.
        LONG: Rows per step in the pivot search, and columns per step in an exchange.
    """
    matrix = tl.program_id(0).to(tl.int64)
    n = plain_value(n).to(tl.int64)
    x_ptr += 2 * matrix * n * n
    info = tl.zeros([], tl.int64)
    for k in range(0, n):
        row = complex_pivot(x_ptr + 2 * k * n, tl.full([], k, tl.int64), n, LONG)
        tl.store(pivots_ptr + matrix * n + k, (row + 1).to(tl.int32))
        if row != k:
            exchange_pairs(x_ptr, k, row, n, LONG)
            tl.debug_barrier()  # the elimination loads what other threads have exchanged
        is_nonzero = complex_eliminate(x_ptr, tl.full([], k, tl.int64), n, ROWS)
        info = tl.where((info == 0) & (is_nonzero == 0), k + 1, info)
        tl.debug_barrier()
    tl.store(info_ptr + matrix, info.to(tl.int32))


def complex_lu(A):
    """Return (LU, pivots, info) for complex square matrices."""
    n = A.shape[-1]
    factors = column_major(A.shape, A)
    pivots = torch.empty(A.shape[:-1], dtype=torch.int32, device=A.device)
    info = torch.empty(A.shape[:-2], dtype=torch.int32, device=A.device)
    for part, source in zip(parts_of(factors), parts_of(A), strict=True):
        elementwise(identity, source, out=part)
    if info.numel():
        LONG = min(max(triton.next_power_of_2(n), 16), 1024)
        complex_lu_kernel[(info.numel(),)](
            torch.view_as_real(factors), pivots, info, plain(n), ROWS=min(LONG, 32), LONG=LONG, num_warps=4
        )
    return factors, pivots, info


@triton.jit
def complex_triangle_kernel(
    t_ptr,
    x_ptr,
    n,
    m,
    batch,
    strides,
    UPPER: tl.constexpr,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Solve a triangular system for BLOCK columns of x, in place.

    An upper triangle is solved as a lower one with reversed rows. Barriers separate the stores of a step from
    the loads of the next.

    Args:
        t_ptr: [..., n, n] complex triangles, read.
        x_ptr: [..., n, m] complex right-hand sides, read and written.
        n: Rows, encoded by `plain`.
        m: Columns of x, encoded by `plain`.
        batch: `walk` over both tensors' batch dimensions, in real elements.
        strides: Row and column strides of t and x, in real elements, encoded by `plain`.
        UPPER: Use the upper triangle.
        UNIT: Take the diagonal as 1.
        ROWS: Rows per step.
        BLOCK: Columns of x per program instance.
    """
    n, m = plain_value(n).to(tl.int64), plain_value(m)
    across = tl.cdiv(m, BLOCK)
    matrix = (tl.program_id(0) // across).to(tl.int64)
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    t_ptr += strided(matrix, batch[0], batch[1][0], False, True)
    x_ptr += strided(matrix, batch[0], batch[1][1], False, True)
    down, right = plain_value(strides[0]), plain_value(strides[1])
    x_down, x_right = plain_value(strides[2]), plain_value(strides[3])
    if UPPER:
        t_ptr, _ = reversed_rows(t_ptr, n, down + right, down)
        x_ptr, _ = reversed_rows(x_ptr, n, x_down, x_down)
        down, right, x_down = -down, -right, -x_down
    for k in range(0, n):
        row = x_ptr + k * x_down + cols * x_right
        a, b = load_pair(row, cols < m)
        if not UNIT:
            corner = t_ptr + k * (down + right)
            a, b = complex_quotient(a, b, tl.load(corner), tl.load(corner + 1))
            tl.debug_barrier()  # threads with a copy of an element must load it before one stores it
            store_pair(row, a, b, cols < m)
        for start in range(k + 1, n, ROWS):
            rows = start + tl.arange(0, ROWS).to(tl.int64)
            c, d = load_pair(t_ptr + rows * down + k * right, rows < n)
            lost, lost_too = complex_product(c[:, None], d[:, None], a[None, :], b[None, :])
            mask = (rows < n)[:, None] & (cols < m)[None, :]
            tile = x_ptr + rows[:, None] * x_down + cols[None, :] * x_right
            x, y = load_pair(tile, mask)
            store_pair(tile, x - lost, y - lost_too, mask)
        tl.debug_barrier()


def complex_triangles(t, x, upper, unit):
    """Replace x by the solution of t @ solution = x, for triangles t with the same batch shape."""
    n, m = x.shape[-2:]
    count = math.prod(x.shape[:-2])
    if x.numel():
        t, x = torch.view_as_real(t), torch.view_as_real(x)
        corners = [v.select(-1, 0).select(-1, 0).select(-1, 0) for v in (t, x)]
        BLOCK = min(max(triton.next_power_of_2(m), 16), 32)
        complex_triangle_kernel[(count * triton.cdiv(m, BLOCK),)](
            t,
            x,
            plain(n),
            plain(m),
            walk(corners, list(range(corners[0].dim())), True),
            integers((*t.stride()[-3:-1], *x.stride()[-3:-1]), True),
            UPPER=upper,
            UNIT=unit,
            ROWS=32,
            BLOCK=BLOCK,
            num_warps=2,
        )


def complex_solve(factors, pivots, b, out, adjoint):
    """Solve A @ out = b, or with A's transpose (`adjoint`), from the LU factors and pivots of A.

    All tensors have the same batch shape.
    """
    sources, parts = parts_of(b), parts_of(out)
    if not adjoint:
        for part, source in zip(parts, sources, strict=True):
            permuted(source, pivots, part)
        complex_triangles(factors, out, False, True)
        complex_triangles(factors, out, True, False)
        return
    x = column_major(b.shape, b)
    for part, source in zip(parts_of(x), sources, strict=True):
        elementwise(identity, source, out=part)
    complex_triangles(factors.mT, x, False, False)
    complex_triangles(factors.mT, x, True, True)
    for part, source in zip(parts, parts_of(x), strict=True):
        permuted(source, pivots, part, True)
