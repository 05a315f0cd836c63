"""Real Schur form of a square matrix by Francis' double-shift QR steps.

Z' A Z is upper triangular except for 2 x 2 blocks, each with a pair of conjugate eigenvalues. Reflections
first make a Hessenberg matrix, and Francis' steps then make it triangular.

A program takes one matrix. Columns are contiguous with one height: the matrix is above, and Z, if wanted,
below it. Source: Golub and Van Loan, Matrix Computations, 2013, sections 7.4 and 7.5.
"""

import triton
import triton.language as tl
from blocks.householder import apply_reflection, reflection


@triton.jit
def hessenberg(x_ptr, n, height, ROWS: tl.constexpr, BLOCK: tl.constexpr, LONG: tl.constexpr):
    """Transform the matrix so that it is zero below the first subdiagonal (Golub and Van Loan, algorithm 7.4.2)."""
    for k in range(0, n - 2):
        column_ptr = x_ptr + k * height
        tau = reflection(column_ptr, k + 1, n, LONG)
        tl.debug_barrier()  # all threads read the reflection's vector, which is stored in the column
        for right in range(k + 1, n, BLOCK):
            cols = right + tl.arange(0, BLOCK).to(tl.int64)
            apply_reflection(x_ptr, column_ptr, tau, k + 1, n, cols, cols < n, (1, height), 1, ROWS)
        tl.debug_barrier()  # the product from the right reads elements that the one from the left stored
        for down in range(0, height, BLOCK):
            rows = down + tl.arange(0, BLOCK).to(tl.int64)
            apply_reflection(x_ptr, column_ptr, tau, k + 1, n, rows, rows < height, (height, 1), 1, ROWS)
        tl.debug_barrier()
        for down in range(k + 2, n, LONG):  # the vector is not needed any more; its elements are 0 in the result
            rows = down + tl.arange(0, LONG)
            tl.store(column_ptr + rows, tl.zeros(rows.shape, tau.dtype), mask=rows < n)
        tl.debug_barrier()


@triton.jit
def negligible(x_ptr, last, height, EPS: tl.constexpr, BLOCK: tl.constexpr):
    """Return the last row, up to `last`, whose subdiagonal element is negligible, or 0.

    The element is compared with its two diagonal neighbors.
    """
    row = tl.zeros([], tl.int32)
    for start in range(1, last + 1, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        pointers = x_ptr + rows.to(tl.int64) * (height + 1)
        inside = rows <= last
        size = tl.abs(tl.load(pointers, mask=inside, other=0.0))
        size += tl.abs(tl.load(pointers - height - 1, mask=inside, other=0.0))
        left = tl.abs(tl.load(pointers - height, mask=inside, other=0.0))
        small = inside & (left <= EPS * tl.where(size > 0, size, 1.0))
        row = tl.maximum(row, tl.max(tl.where(small, rows, 0), 0))
    return row


@triton.jit
def reflect_three(x_ptr, k, three, n, height, u, v, tau, BLOCK: tl.constexpr):
    """Reflect rows and columns k, k + 1 and, if `three`, k + 2 by tau and (1, u, v).

    These rows are 0 to the left of column k.
    """
    # empty ranges mask the third row and column, so one path serves reflections with two and three elements
    column_end, row_end = tl.where(three, n, 0), tl.where(three, height, 0)
    for start in range(k, n, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        pointers, mask, third = x_ptr + k + cols * height, cols < n, cols < column_end
        first, second = tl.load(pointers, mask=mask, other=0.0), tl.load(pointers + 1, mask=mask, other=0.0)
        third_value = tl.load(pointers + 2, mask=third, other=0.0)
        total = tau * (first + u * second + v * third_value)
        tl.debug_barrier()  # several threads may load the same element, and one of them stores it
        tl.store(pointers, first - total, mask=mask)
        tl.store(pointers + 1, second - u * total, mask=mask)
        tl.store(pointers + 2, third_value - v * total, mask=third)
    tl.debug_barrier()  # columns k to k + 2, which are read next, have elements that other threads stored
    for start in range(0, height, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        pointers, mask, third = x_ptr + k * height + rows, rows < height, rows < row_end
        first, second = tl.load(pointers, mask=mask, other=0.0), tl.load(pointers + height, mask=mask, other=0.0)
        third_value = tl.load(pointers + 2 * height, mask=third, other=0.0)
        total = tau * (first + u * second + v * third_value)
        tl.debug_barrier()
        tl.store(pointers, first - total, mask=mask)
        tl.store(pointers + height, second - u * total, mask=mask)
        tl.store(pointers + 2 * height, third_value - v * total, mask=third)
    tl.debug_barrier()


@triton.jit
def first_column(x_ptr, top, last, height, special):
    """Return the first three elements in (H - a)(H - b) e, with a and b the last two rows' eigenvalues.

    A special step uses other shifts, so no cycle lasts (Golub and Van Loan, algorithm 7.5.1).
    """
    corner, end = x_ptr + top * (height + 1), x_ptr + last * (height + 1)
    low, high = tl.load(end), tl.load(end - height - 1)
    product = tl.load(end - height) * tl.load(end - 1)
    size = tl.abs(tl.load(end - height)) + tl.abs(tl.load(end - 2 * height - 1))
    high = tl.where(special, low + 0.75 * size, high)
    low = tl.where(special, high, low)
    product = tl.where(special, -0.4375 * size * size, product)
    start, below, next_one = tl.load(corner), tl.load(corner + 1), tl.load(corner + height + 1)
    one, two = low - start, high - start
    x = one * two - product + tl.load(corner + height) * below
    return x, below * (next_one - start - one - two), below * tl.load(corner + height + 2)


@triton.jit
def francis_step(x_ptr, top, last, n, height, special, BLOCK: tl.constexpr):
    """Do one double-shift step in rows `top` to `last`, at least three, in a Hessenberg matrix."""
    x, y, z = first_column(x_ptr, top, last, height, special)
    for row in range(top, last):
        k = tl.full([], row, tl.int64)
        corner = x_ptr + k * (height + 1)
        three = k + 1 < last
        size = tl.abs(x) + tl.abs(y) + tl.abs(z)  # scaled by this, squares neither overflow nor underflow
        unit = tl.where(size > 0, size, 1.0)
        norm = unit * tl.sqrt((x / unit) * (x / unit) + (y / unit) * (y / unit) + (z / unit) * (z / unit))
        beta = tl.where(x < 0, norm, -norm)
        divisor = tl.where(size > 0, x - beta, 1.0)
        tau = tl.where(size > 0, (beta - x) / tl.where(size > 0, beta, 1.0), 0.0)
        if k > top:  # the bulge's column left of k becomes (beta, 0, 0)
            tl.store(corner - height, beta)
            tl.store(corner - height + 1, tl.zeros_like(beta))
            tl.store(corner - height + 2, tl.zeros_like(beta), mask=three)
        reflect_three(x_ptr, k, three, n, height, y / divisor, z / divisor, tau, BLOCK)
        x, y = tl.load(corner + 1), tl.load(corner + 2)
        z = tl.where(k + 2 < last, tl.load(corner + 3), 0.0)  # in bounds of the work area even in the last row
        tl.debug_barrier()


@triton.jit
def block_of_two(x_ptr, height, mask):
    """Return the quantities that give the eigenvalues of 2 x 2 blocks at x_ptr.

    These are (half the difference a - d, the squared half distance between the eigenvalues, the element below
    the diagonal, the last element d).
    """
    a, below = tl.load(x_ptr, mask=mask, other=0.0), tl.load(x_ptr + 1, mask=mask, other=0.0)
    above, d = tl.load(x_ptr + height, mask=mask, other=0.0), tl.load(x_ptr + height + 1, mask=mask, other=0.0)
    half = 0.5 * (a - d)
    return half, half * half + above * below, below, d


@triton.jit
def split_block(x_ptr, k, n, height, BLOCK: tl.constexpr):
    """Rotate rows k and k + 1 to a triangle if both eigenvalues are real.

    (z, below) is an eigenvector of the block.
    """
    pointer = x_ptr + k * (height + 1)
    half, apart, below, _ = block_of_two(pointer, height, True)
    if apart >= 0:
        z = half + tl.where(half < 0, -tl.sqrt(apart), tl.sqrt(apart))
        size = tl.abs(z) + tl.abs(below)
        z, below = z / size, below / size
        norm = tl.sqrt(z * z + below * below)
        beta = tl.where(z < 0, norm, -norm)
        reflect_three(x_ptr, k, k < 0, n, height, below / (z - beta), tl.zeros_like(z), (beta - z) / beta, BLOCK)
        tl.store(pointer + 1, tl.zeros_like(z))
        tl.debug_barrier()


@triton.jit
def schur_form(
    x_ptr,
    n,
    height,
    EPS: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LONG: tl.constexpr,
):
    """Transform the matrix to its Schur form, in at most STEPS steps per row.

    EPS is the size that counts as 0 relative to 1.
    """
    hessenberg(x_ptr, n, height, ROWS, BLOCK, LONG)
    last, step = tl.zeros([], tl.int32) + (n - 1), tl.zeros([], tl.int32)
    steps_left = tl.zeros([], tl.int32) + STEPS * n
    # invariant: rows behind `last` have their final form; the step limit ends the loop if NaN keeps it from converging
    while (last > 0) & (steps_left > 0):
        top = negligible(x_ptr, last, height, EPS, BLOCK)
        tl.debug_barrier()
        tl.store(x_ptr + top + (top - 1).to(tl.int64) * height, tl.zeros([], x_ptr.dtype.element_ty), mask=top > 0)
        tl.debug_barrier()
        if top + 1 == last:
            split_block(x_ptr, top.to(tl.int64), n, height, BLOCK)
        if top + 1 >= last:
            last = top - 1
            step = tl.zeros_like(step)
        else:
            step += 1
            francis_step(x_ptr, top.to(tl.int64), last.to(tl.int64), n, height, step % 10 == 0, BLOCK)
        steps_left -= 1
