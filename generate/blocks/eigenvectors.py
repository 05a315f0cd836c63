"""Eigenvalues and eigenvectors of square matrices, from the real Schur form Z' A Z = T.

Eigenvectors of T are computed by substitution from the last row up. Z times them are the eigenvectors of A
(Golub and Van Loan, Matrix Computations, 2013, section 7.6.4).

A program instance takes one matrix, and its lanes are eigenvalues. Real eigenvalues are exactly real, and
complex ones come as conjugate pairs.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.householder import row_blocks
from blocks.jacobi import take_matrix
from blocks.offsets import integers, plain, plain_value, strided, walk
from blocks.schur import block_of_two, schur_form
from blocks.substitution import column_major, square_rows

# Largest exponent for scaling by powers of 2, below the largest exponent of the type (127 and 1023), and the
# machine epsilon (2^-23 and 2^-52), rounded up: a size that is negligible beside 1.
EIGEN_LIMITS_FP32 = (126.0, 1.2e-7)
EIGEN_LIMITS_FP64 = (1000.0, 2.3e-16)

EIGEN_STEPS = 30  # iterations per eigenvalue, as in LAPACK's dlahqr


@triton.jit
def schur_values(x_ptr, lanes, n, height):
    """Return (real parts, imaginary parts, first row of the block) for the eigenvalues of a Schur form."""
    inside = lanes < n
    diagonal_ptr = x_ptr + lanes.to(tl.int64) * (height + 1)
    second = tl.load(diagonal_ptr - height, mask=inside & (lanes > 0), other=0.0) != 0
    pair = second | (tl.load(diagonal_ptr + 1, mask=lanes < n - 1, other=0.0) != 0)
    first = tl.where(second, lanes - 1, lanes)
    half, apart, _, d = block_of_two(x_ptr + first.to(tl.int64) * (height + 1), height, inside & pair)
    size = tl.sqrt(tl.maximum(-apart, 0.0))
    real = tl.where(pair, d + half, tl.load(diagonal_ptr, mask=inside, other=0.0))
    return real, tl.where(pair, tl.where(second, -size, size), 0.0), first


@triton.jit
def guarded_quotient(a, b, c, d, EPS: tl.constexpr):
    """Return (a + ib) / (c + id), with a divisor smaller than EPS replaced by EPS."""
    size = tl.abs(c) + tl.abs(d)
    near = size < EPS
    c, d = tl.where(near, EPS, c), tl.where(near, 0.0, d)
    size = tl.where(near, EPS, size)
    c, d = c / size, d / size
    length = (c * c + d * d) * size
    return (a * c + b * d) / length, (b * c - a * d) / length


@triton.jit
def row_sums(x_ptr, v_ptr, row, first, n, height, lanes, ROWS: tl.constexpr):
    """Return the products of a row of T, from column `first` on, with the vectors of these lanes.

    The result is a tuple of real and imaginary parts.
    """
    real = tl.zeros(lanes.shape, x_ptr.dtype.element_ty)
    imaginary = real
    for start in range(first, n, ROWS):
        cols = start + tl.arange(0, ROWS).to(tl.int64)
        t = tl.load(x_ptr + row + cols * height, mask=cols < n, other=0.0)[:, None]
        element_ptr = v_ptr + cols[:, None] * n + lanes[None, :]
        mask = (cols < n)[:, None] & (lanes < n)[None, :]
        real += tl.sum(t * tl.load(element_ptr, mask=mask, other=0.0), 0)
        imaginary += tl.sum(t * tl.load(element_ptr + n * n, mask=mask, other=0.0), 0)
    return real, imaginary


@triton.jit
def shorten(v_ptr, first, n, lanes, size, ROWS: tl.constexpr):
    """Divide vectors with an element larger than 1e6 by its size, from row `first` on, to prevent overflow."""
    factor = tl.where(size > 1e6, 1.0 / tl.where(size > 1e6, size, 1.0), 1.0)[None, :]
    for start in range(first, n, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        element_ptr = v_ptr + rows[:, None] * n + lanes[None, :]
        mask = (rows < n)[:, None] & (lanes < n)[None, :]
        real, imaginary = tl.load(element_ptr, mask=mask, other=0.0), tl.load(element_ptr + n * n, mask=mask, other=0.0)
        tl.debug_barrier()
        tl.store(element_ptr, real * factor, mask=mask)
        tl.store(element_ptr + n * n, imaginary * factor, mask=mask)


@triton.jit
def solved_row(x_ptr, v_ptr, row, n, height, lanes, values, EPS: tl.constexpr, ROWS: tl.constexpr):
    """Compute element `row` of the eigenvectors of T from the elements below, and return its size."""
    real, imaginary, first = values
    a, b = row_sums(x_ptr, v_ptr, row, row + 1, n, height, lanes, ROWS)
    diagonal = tl.load(x_ptr + row * (height + 1))
    a, b = guarded_quotient(-a, -b, diagonal - real, -imaginary, EPS)
    a = tl.where(first > row, a, (first == row).to(a.dtype))
    b = tl.where(first > row, b, 0.0)
    tl.store(v_ptr + row * n + lanes, a, mask=lanes < n)
    tl.store(v_ptr + n * n + row * n + lanes, b, mask=lanes < n)
    return tl.abs(a) + tl.abs(b)


@triton.jit
def solved_rows(x_ptr, v_ptr, row, n, height, lanes, values, EPS: tl.constexpr, ROWS: tl.constexpr):
    """Compute elements `row` and row + 1 of a 2 x 2 block by Cramer's rule, and return the larger size.

    In the block's own vectors they are (eigenvalue - d, below).
    """
    real, imaginary, first = values
    corner_ptr = x_ptr + row * (height + 1)
    p, q = row_sums(x_ptr, v_ptr, row, row + 2, n, height, lanes, ROWS)
    r, s = row_sums(x_ptr, v_ptr, row + 1, row + 2, n, height, lanes, ROWS)
    above, below = tl.load(corner_ptr + height), tl.load(corner_ptr + 1)
    one, two = tl.load(corner_ptr) - real, tl.load(corner_ptr + height + 1) - real
    down, across = one * two - imaginary * imaginary - above * below, -imaginary * (one + two)
    in_block, later = first == row, first > row
    a, b = above * r - (two * p + imaginary * q), above * s - (two * q - imaginary * p)
    c, d = below * p - (one * r + imaginary * s), below * q - (one * s - imaginary * r)
    a, b = guarded_quotient(a, b, down, across, EPS * EPS)
    c, d = guarded_quotient(c, d, down, across, EPS * EPS)
    a, b = tl.where(later, a, tl.where(in_block, -two, 0.0)), tl.where(later, b, tl.where(in_block, imaginary, 0.0))
    c, d = tl.where(later, c, tl.where(in_block, below, 0.0)), tl.where(later, d, 0.0)
    tl.store(v_ptr + row * n + lanes, a, mask=lanes < n)
    tl.store(v_ptr + n * n + row * n + lanes, b, mask=lanes < n)
    tl.store(v_ptr + (row + 1) * n + lanes, c, mask=lanes < n)
    tl.store(v_ptr + n * n + (row + 1) * n + lanes, d, mask=lanes < n)
    return tl.maximum(tl.abs(a) + tl.abs(b), tl.abs(c) + tl.abs(d))


@triton.jit
def schur_vectors(x_ptr, v_ptr, n, height, lanes, EPS: tl.constexpr, ROWS: tl.constexpr):
    """Compute the eigenvectors of T.

    Element i of a lane's vector is v[i, lane], and its imaginary part is n * n elements behind it.
    """
    values = schur_values(x_ptr, lanes, n, height)
    row = n.to(tl.int64) - 1  # int64, because row * n may exceed 32 bits
    while row >= 0:
        at = tl.maximum(row, 1)
        if (row > 0) & (tl.load(x_ptr + at + (at - 1) * height) != 0):
            row -= 1
            size = solved_rows(x_ptr, v_ptr, row, n, height, lanes, values, EPS, ROWS)
        else:
            size = solved_row(x_ptr, v_ptr, row, n, height, lanes, values, EPS, ROWS)
        tl.debug_barrier()  # the next row loads what other threads have stored
        if tl.max(size, 0) > 1e6:  # far below the overflow of a square in fp32, 1.8e19
            shorten(v_ptr, row, n, lanes, size, ROWS)
            tl.debug_barrier()
        row -= 1


@triton.jit
def vector_tile(z_ptr, v_ptr, rows, n, height, lanes):
    """Return the elements `rows` of Z times the vectors of these lanes: real parts, imaginary parts, mask."""
    mask = (rows < n)[:, None] & (lanes < n)[None, :]
    real = tl.zeros(mask.shape, z_ptr.dtype.element_ty)
    imaginary = real
    for k in range(0, n):
        z = tl.load(z_ptr + rows + k * height, mask=rows < n, other=0.0)[:, None]
        element_ptr = v_ptr + k * n + lanes
        real += z * tl.load(element_ptr, mask=lanes < n, other=0.0)[None, :]
        imaginary += z * tl.load(element_ptr + n * n, mask=lanes < n, other=0.0)[None, :]
    return real, imaginary, mask


@triton.jit
def store_vectors(z_ptr, v_ptr, out_ptr, n, height, lanes, ROWS: tl.constexpr):
    """Store Z times the vectors of these lanes, scaled to length 1, to the columns of out as (re, im) pairs."""
    total = tl.zeros(lanes.shape, z_ptr.dtype.element_ty)
    for start in range(0, n, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        real, imaginary, mask = vector_tile(z_ptr, v_ptr, rows, n, height, lanes)
        total += tl.sum(real * real + imaginary * imaginary, 0)
        pair_ptr = out_ptr + 2 * (rows[:, None] + lanes[None, :].to(tl.int64) * n)
        tl.store(pair_ptr, real, mask=mask)
        tl.store(pair_ptr + 1, imaginary, mask=mask)
    tl.debug_barrier()
    length = tl.sqrt(tl.where(lanes < n, total, 1.0))[None, :]
    for start in range(0, n, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows < n)[:, None] & (lanes < n)[None, :]
        pair_ptr = out_ptr + 2 * (rows[:, None] + lanes[None, :].to(tl.int64) * n)
        real, imaginary = tl.load(pair_ptr, mask=mask, other=0.0), tl.load(pair_ptr + 1, mask=mask, other=0.0)
        tl.debug_barrier()
        tl.store(pair_ptr, real / length, mask=mask)
        tl.store(pair_ptr + 1, imaginary / length, mask=mask)


@triton.jit
def eigenvectors_kernel(
    a_ptr,
    work_ptr,
    values_ptr,
    vectors_ptr,
    n,
    batch,
    a_stride,
    LIMITS: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LONG: tl.constexpr,
):
    """Compute eigenvalues, and optionally eigenvectors, of one matrix.

    Args:
        a_ptr: [batch, n, n], read.
        work_ptr: Workspace per matrix, read and written: its columns, Z, and the vectors of T; without vectors
            only its columns.
        values_ptr: [batch, n] (re, im) pairs, written.
        vectors_ptr: [batch, n, n] column-major (re, im) pairs, written, or None.
        n: Rows, encoded by `plain`.
        batch: `walk` over the batch dimensions of a.
        a_stride: Row and column stride of a, encoded by `plain`.
        LIMITS: Largest exponent for scaling by powers of 2, and the size that is negligible beside 1.
        STEPS: Iterations per eigenvalue.
        ROWS: Rows per step.
        BLOCK: Lanes, one per eigenvalue.
        LONG: Rows per step in the Schur form.
    """
    matrix = tl.program_id(0).to(tl.int64)
    n = plain_value(n)
    n_wide = n.to(tl.int64)
    height = n_wide if vectors_ptr is None else 2 * n_wide
    a_ptr += strided(matrix, batch[0], batch[1][0], False, True)
    work_ptr += matrix * n * (height if vectors_ptr is None else 2 * height)
    stride = plain_value(a_stride[0]), plain_value(a_stride[1])
    scale = take_matrix(a_ptr, work_ptr, n_wide, height, height * n, stride, LIMITS[0], False, 1024)
    tl.debug_barrier()
    schur_form(work_ptr, n, height, LIMITS[1], STEPS, ROWS, BLOCK, LONG)
    tl.debug_barrier()
    for start in range(0, n, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        real, imaginary, _ = schur_values(work_ptr, lanes, n, height)
        tl.store(values_ptr + 2 * (matrix * n + lanes), real / scale, mask=lanes < n)
        tl.store(values_ptr + 2 * (matrix * n + lanes) + 1, imaginary / scale, mask=lanes < n)
        if vectors_ptr is not None:
            v_ptr = work_ptr + height * n
            schur_vectors(work_ptr, v_ptr, n_wide, height, lanes, LIMITS[1], ROWS)
            tl.debug_barrier()
            out_ptr = vectors_ptr + 2 * matrix * n * n
            store_vectors(work_ptr + n, v_ptr, out_ptr, n_wide, height, lanes, ROWS)


def general_eigen(A, wanted, name):
    """Return (eigenvalues, eigenvectors) of real square matrices, both complex.

    Eigenvalues have no particular order. Eigenvectors are columns with length 1, or None unless `wanted`.
    """
    n = square_rows(A, name)
    count, dtype = math.prod(A.shape[:-2]), A.dtype.to_complex()
    values = torch.empty(A.shape[:-1], dtype=dtype, device=A.device)
    vectors = column_major(A.shape, A, dtype) if wanted else None
    if values.numel():
        ROWS, LONG = row_blocks(n)
        corner = A.select(-1, 0).select(-1, 0)
        eigenvectors_kernel[(count,)](
            A,
            # its columns and Z, and the real and imaginary parts of the vectors of T
            torch.empty(count * n * n * (4 if wanted else 1), dtype=A.dtype, device=A.device),
            torch.view_as_real(values),
            torch.view_as_real(vectors) if wanted else None,
            plain(n),
            walk([corner], list(range(corner.dim())), True),
            integers(A.stride()[-2:], True),
            LIMITS=EIGEN_LIMITS_FP32 if A.dtype == torch.float32 else EIGEN_LIMITS_FP64,
            STEPS=EIGEN_STEPS,
            ROWS=ROWS,
            BLOCK=min(max(triton.next_power_of_2(n), 16), 64),
            LONG=LONG,
            num_warps=4,
        )
    return values, vectors
