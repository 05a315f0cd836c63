"""Kernels of Fourier transforms: roots of unity, one pass with a factor of the length, and the chirp product.

Used by blocks/fourier.py, which chooses the passes and launches them.
"""

import triton
import triton.language as tl
from blocks.complex_numbers import complex_product
from blocks.offsets import integer_values, plain_value, strided
from blocks.types import number_value


@triton.jit
def root_of_unity(t, n):
    """Return exp(-2 pi i t / n) for integers t from 0 to n - 1.

    The angle is reduced to quarter turns and a remainder of at most an eighth turn, which keeps it accurate.
    """
    t = t.to(tl.int64)
    quarter = (8 * t + n) // (2 * n)
    angle = (4 * t - quarter * n).to(tl.float64) * 1.5707963267948966 / n.to(tl.float64)
    re, im = tl.cos(angle), -tl.sin(angle)
    re, im = tl.where(quarter % 2 == 1, im, re), tl.where(quarter % 2 == 1, -re, im)
    negative = (quarter // 2) % 2 == 1
    return tl.where(negative, -re, re), tl.where(negative, -im, im)


@triton.jit
def tile_twiddle(i, n):
    """Return exp(-2 pi i k m / n) for i = k n / 16 + m."""
    return root_of_unity(i // (n // 16) * (i % (n // 16)), n)


@triton.jit
def chirp(m, n):
    """Return exp(-pi i m^2 / n)."""
    m = m.to(tl.int64)
    # Reduced in integers, because an angle of m^2 periods would not be accurate.
    return root_of_unity((m * m) % (2 * n), 2 * n)


@triton.jit
def chirp_filter(m, n, size):
    """Return exp(pi i m^2 / n) for m from 1 - n to n - 1 in a period of `size`, else 0.

    Negative m are at the end of the period.
    """
    m = tl.minimum(m, size - m)
    re, im = chirp(m, n)
    return tl.where(m < n, re, 0.0), tl.where(m < n, -im, 0.0)


@triton.jit
def read_line(x_ptr, at, stride, length, mask, READS: tl.constexpr):
    """Load element `at` of each line and return its real and imaginary part.

    READS is "complex", "real" or "hermitian". A hermitian line stores only its first half; the second half is
    its reversed conjugate.
    """
    mirrored = at > length // 2
    if READS == "hermitian":
        at = tl.where(mirrored, length - at, at)
    re = tl.load(x_ptr + at * stride, mask=mask, other=0)
    if READS == "real":
        return re, tl.zeros_like(re)
    im = tl.load(x_ptr + at * stride + 1, mask=mask, other=0)
    if READS == "hermitian":
        im = tl.where(mirrored, -im, im)
    return re, im


@triton.jit
def pass_kernel(
    x_ptr,
    y_ptr,
    roots_ptr,
    lines,
    length,
    step,
    kept,
    axis,
    shape,
    strides,
    scale,
    SIGN: tl.constexpr,
    RADIX: tl.constexpr,
    ROWS: tl.constexpr,
    READS: tl.constexpr,
    WRITES: tl.constexpr,
    INNER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute one pass: RADIX-point transforms with stride length / RADIX, times the twiddle factors.

    Args:
        x_ptr: Lines in the form READS, read with `axis` and `strides`.
        y_ptr: Lines in the form WRITES, written with `axis` and `strides`.
        roots_ptr: [length, 2], exp(-2 pi i t / length), read.
        lines: Number of lines, encoded by `plain`.
        length: Elements per line, encoded by `plain`.
        step: Product of the factors in earlier passes, encoded by `plain`: the number of adjacent transforms.
        kept: Elements to store per line, encoded by `plain`.
        axis: Strides along a line in x and in y, encoded by `plain`.
        shape: Sizes of the other dimensions, encoded by `plain`.
        strides: Strides of the other dimensions in x and in y, encoded by `plain`.
        scale: Factor for the results, encoded by `number_argument`.
        SIGN: 1 in the direction of the roots, -1 in the other.
        RADIX: Factor of the length that this pass transforms.
        ROWS: RADIX, rounded up to a power of 2.
        READS: "complex", "real" or "hermitian", see `read_line`.
        WRITES: "complex" or "real".
        INNER: True if adjacent lanes work on adjacent lines.
        BLOCK: Columns per program instance.
    """
    lines, length, step = plain_value(lines), plain_value(length), plain_value(step)
    axis = integer_values(axis, True)
    columns = length // RADIX
    c = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, column = (c % lines, c // lines) if INNER else (c // columns, c % columns)
    inside = c < lines * columns
    x_ptr += strided(row, shape, strides[0], 0)
    y_ptr += strided(row, shape, strides[1], 0)
    k = tl.arange(0, ROWS)
    re = tl.zeros([ROWS, BLOCK], roots_ptr.dtype.element_ty)
    im = tl.zeros([ROWS, BLOCK], roots_ptr.dtype.element_ty)
    for j in range(RADIX):
        x_re, x_im = read_line(x_ptr, column + j * columns, axis[0], length, inside, READS)
        w_ptr = roots_ptr + (j * k % RADIX) * columns * 2  # exp(-2 pi i j k / RADIX)
        w_re, w_im = tl.load(w_ptr), SIGN * tl.load(w_ptr + 1)
        t_re, t_im = complex_product(w_re[:, None], w_im[:, None], x_re[None, :], x_im[None, :])
        re += t_re
        im += t_im
    before = column // step * step
    twiddle = roots_ptr + tl.where(k < RADIX, k, 0)[:, None] * before[None, :] * 2
    mask = (k < RADIX)[:, None] & inside[None, :]
    w_re, w_im = tl.load(twiddle, mask=mask, other=0), SIGN * tl.load(twiddle + 1, mask=mask, other=0)
    re, im = complex_product(re, im, w_re, w_im)
    at = (column + before * (RADIX - 1))[None, :] + step * k[:, None]
    mask &= at < plain_value(kept)
    scale = number_value(scale, roots_ptr.dtype.element_ty)
    tl.store(y_ptr[None, :] + at * axis[1], re * scale, mask=mask)
    if WRITES == "complex":
        tl.store(y_ptr[None, :] + at * axis[1] + 1, im * scale, mask=mask)


@triton.jit
def chirp_kernel(
    x_ptr,
    y_ptr,
    chirps_ptr,
    lines,
    length,
    size,
    axis,
    shape,
    strides,
    scale,
    SIGN: tl.constexpr,
    READS: tl.constexpr,
    WRITES: tl.constexpr,
    BEFORE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Multiply lines by exp(-pi i m^2 / length), and pad them with 0 from element `length` up to `size`.

    Args:
        x_ptr: Lines with `length` elements in the form READS, read with `axis` and `strides`.
        y_ptr: Lines with `size` elements in the form WRITES, written with `axis` and `strides`.
        chirps_ptr: [length, 2], exp(-pi i m^2 / length), read.
        lines: Number of lines, encoded by `plain`.
        length: Elements per line of x, encoded by `plain`.
        size: Elements per line of y, encoded by `plain`.
        axis: Strides along a line in x and in y, encoded by `plain`.
        shape: Sizes of the other dimensions, encoded by `plain`.
        strides: Strides of the other dimensions in x and in y, encoded by `plain`.
        scale: Factor for the results, encoded by `number_argument`.
        SIGN: Sign of the imaginary parts: 1 for a forward transform, -1 for a backward one.
        READS: "complex", "real" or "hermitian", see `read_line`.
        WRITES: "complex" or "real".
        BEFORE: True to apply SIGN to the elements that are read, False to those that are written.
        BLOCK: Elements of y per program instance.
    """
    lines, length, size = plain_value(lines), plain_value(length), plain_value(size)
    axis = integer_values(axis, True)
    c = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, m = c // size, c % size
    inside = c < lines * size
    x_ptr += strided(row, shape, strides[0], 0)
    y_ptr += strided(row, shape, strides[1], 0) + m * axis[1]
    re, im = read_line(x_ptr, m, axis[0], length, inside & (m < length), READS)
    w_re = tl.load(chirps_ptr + 2 * m, mask=m < length, other=0)
    w_im = tl.load(chirps_ptr + 2 * m + 1, mask=m < length, other=0)
    re, im = complex_product(re, SIGN * im if BEFORE else im, w_re, w_im)
    scale = number_value(scale, chirps_ptr.dtype.element_ty)
    tl.store(y_ptr, re * scale, mask=inside)
    if WRITES == "complex":
        tl.store(y_ptr + 1, (im if BEFORE else SIGN * im) * scale, mask=inside)
