"""Discrete Fourier transforms of complex or real lines, in any number of dimensions.

X[k] = sum over j of x[j] exp(-+2 pi i j k / n). The algorithm depends on the length:

- A power of 2 runs in `blocks.butterflies`: whole lines in a tile, or passes of up to 256 elements.
- A length with prime factors up to 64 is split into factors of up to 64, and each factor is a pass (Stockham
  autosort, Van Loan 1992, section 1.7). A program instance holds the sums for a tile of columns and adds one
  input element per column in each step.
- Any other length is a convolution with a chirp (Bluestein 1970), whose length is a power of 2.

Roots of unity are computed in float64, once per length.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.butterflies import BUTTERFLY_TILE, LARGEST_BUTTERFLY, butterfly_kernel, butterfly_radices
from blocks.complex_numbers import complex_product
from blocks.elementwise import elementwise, flat_index
from blocks.offsets import integer_values, integers, plain, plain_value, strided
from blocks.types import number_argument, number_value

__all__ = ["empty_transform", "transform", "transformed_dims"]

LARGEST = 64  # largest factor in one pass


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
    """Compute one pass: RADIX-point transforms a stride of length / RADIX apart, then the twiddle factors.

    Parameters of the launch:
        x_ptr, y_ptr: Lines, read and written.
        roots_ptr: [length, 2], exp(-2 pi i t / length), read.
        lines, length: Line count and length.
        step: Product of the factors in earlier passes: that many transforms are neighbors.
        kept: Line elements to store.
        axis: Line strides in x and in y.
        shape, strides: The other dimensions, and their strides in x and in y.
        scale: Factor for the results.
        SIGN: 1 in the direction of the roots, -1 in the other.
        RADIX, ROWS: Factor, and the next power of 2.
        READS, WRITES: See `read_line`; "complex" or "real" for the result.
        INNER: Neighboring lanes work on neighboring lines.
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
        w_ptr = roots_ptr + (j * k % RADIX) * columns * 2
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

    Parameters of the launch:
        x_ptr, y_ptr: Lines, read and written.
        chirps_ptr: [length, 2], read.
        SIGN: Sign of the imaginary parts, applied as they are read if BEFORE, else as they are written.

    All other parameters are as in `pass_kernel`.
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


def radices(n):
    """Return factors of n up to LARGEST, found greedily to be few; None if a prime factor is larger."""
    primes, p = [], 2
    while n > 1:
        if p * p > n:
            p = n
        while n % p == 0:
            primes.append(p)
            n //= p
        p += 1
    factors = []
    for prime in reversed(primes):
        if prime > LARGEST:
            return None
        fitting = [k for k in range(len(factors)) if factors[k] * prime <= LARGEST]
        if fitting:
            factors[fitting[0]] *= prime
        else:
            factors.append(prime)
    return factors or [1]


def complex_table(function, n, like, *numbers):
    """Return function(m, *numbers) -> (re, im) for m from 0 to n - 1, as [n, 2] in the dtype of `like`."""
    out = torch.empty((n, 2), dtype=like.dtype, device=like.device)
    elementwise(function, numbers=numbers, source=(flat_index,), common=torch.int64, out=out.unbind(1))
    return out


def lines_along(d, *tensors, units=(1, 1)):
    """Return (lines, axis, shape, strides) as launch arguments for tensors whose lines run along dimension d.

    Strides are divided by the tensors' `units`.
    """
    outer = [k for k in range(tensors[0].dim()) if k != d]
    shape = [tensors[0].shape[k] for k in outer]
    pairs = list(zip(tensors, units, strict=True))
    strides = tuple([integers([t.stride(k) // unit for k in outer], True) for t, unit in pairs])
    return math.prod(shape), integers([t.stride(d) // unit for t, unit in pairs], True), integers(shape, True), strides


def room(x, d, n, like=None):
    """Return the real parts of a new complex tensor with x's shape, but with n elements along dimension d.

    Its memory order is that of `like`, or else has d innermost.
    """
    order = [k for k in range(x.dim()) if k != d] + [d]
    if like is not None:
        order = sorted(range(x.dim()), key=like.stride, reverse=True)
    pairs = torch.empty([*[n if k == d else x.shape[k] for k in order], 2], dtype=x.dtype, device=x.device)
    return pairs.select(-1, 0).permute([order.index(k) for k in range(x.dim())])


def is_inner(x, d):
    """Return True if neighbors in memory belong to neighboring lines along d."""
    return any([x.shape[k] > 1 and x.stride(k) < x.stride(d) for k in range(x.dim()) if k != d])


def transform_butterflies(x, y, d, n, sign, scale, reads, writes):
    """Compute `transform_lines` for a power-of-two length of at least 2."""
    factors = butterfly_radices(n, is_inner(x, d))
    roots = complex_table(root_of_unity, n, x, n) if len(factors) > 1 else None
    source, step = x, 1
    for place, radix in enumerate(factors):
        last = place == len(factors) - 1
        target = y if last else room(x, d, n, y)
        kinds = reads if place == 0 else "complex", writes if last else "complex"
        lines, axis, shape, strides = lines_along(d, source, target, units=[1 if k == "real" else 2 for k in kinds])
        BLOCK = min(BUTTERFLY_TILE // radix, triton.next_power_of_2(lines * (n // radix)))
        butterfly_kernel[(triton.cdiv(lines * (n // radix), BLOCK),)](
            source,
            target,
            complex_table(tile_twiddle, radix, x, radix) if radix > LARGEST_BUTTERFLY else None,
            roots,
            plain(lines),
            plain(n),
            plain(step),
            plain(target.shape[d]),
            axis,
            shape,
            strides,
            number_argument(scale if last else 1.0, y.dtype),
            SIGN=sign,
            RADIX=radix,
            READS=kinds[0],
            WRITES=kinds[1],
            INNER=is_inner(source, d),
            BLOCK=BLOCK,
            num_warps=max(radix * BLOCK // 512, 1),
        )
        source, step = target, step * radix


def transform_lines(x, y, d, n, sign, scale=1.0, reads="complex", writes="complex"):
    """Transform length-n lines along dimension d from x to y.

    x and y are the real parts of complex tensors, or real tensors, according to `reads` and `writes`. `sign` is
    1 for forward and -1 for backward.
    """
    if n > 1 and n & (n - 1) == 0:
        transform_butterflies(x, y, d, n, sign, scale, reads, writes)
        return
    factors = radices(n)
    if factors is None:
        convolve_lines(x, y, d, n, sign, scale, reads, writes)
        return
    roots = complex_table(root_of_unity, n, x, n)
    inner = is_inner(x, d)
    source, step = x, 1
    for place, radix in enumerate(factors):
        last = place == len(factors) - 1
        target = y if last else room(x, d, n, x if inner else None)
        lines, axis, shape, strides = lines_along(d, source, target)
        ROWS = triton.next_power_of_2(radix)
        BLOCK = max(16, min(4096 // ROWS, triton.next_power_of_2(lines * (n // radix))))
        pass_kernel[(triton.cdiv(lines * (n // radix), BLOCK),)](
            source,
            target,
            roots,
            plain(lines),
            plain(n),
            plain(step),
            plain(target.shape[d]),
            axis,
            shape,
            strides,
            number_argument(scale if last else 1.0, y.dtype),
            SIGN=sign,
            RADIX=radix,
            ROWS=ROWS,
            READS=reads if place == 0 else "complex",
            WRITES=writes if last else "complex",
            INNER=inner,
            BLOCK=BLOCK,
        )
        source, step = target, step * radix


def convolve_lines(x, y, d, n, sign, scale, reads, writes):
    """Compute `transform_lines` for any length as a convolution with a chirp (Bluestein).

    This uses j k = (j^2 + k^2 - (k - j)^2) / 2.
    """
    size = triton.next_power_of_2(2 * n - 1)
    chirps = complex_table(chirp, n, x, n)
    filter_ = complex_table(chirp_filter, size, x, n, size)
    response = torch.empty_like(filter_)
    transform_lines(filter_.select(-1, 0), response.select(-1, 0), 0, size, 1)
    first, second = room(x, d, size), room(x, d, size)
    chirp_lines(x, first, d, n, chirps, sign, reads, "complex", True, 1.0)
    transform_lines(first, second, d, size, 1)
    responses = [part.view([size if k == d else 1 for k in range(x.dim())]) for part in response.unbind(-1)]
    parts = [t.as_strided(t.shape, t.stride(), t.storage_offset() + part) for t in (second, first) for part in (0, 1)]
    elementwise(complex_product, *parts[:2], *responses, out=tuple(parts[2:]))
    transform_lines(first, second, d, size, -1, 1.0 / size)
    chirp_lines(second, y, d, n, chirps, sign, "complex", writes, False, scale)


def chirp_lines(x, y, d, n, chirps, sign, reads, writes, before, scale):
    """Launch `chirp_kernel` from x to y."""
    lines, axis, shape, strides = lines_along(d, x, y)
    size = y.shape[d]
    chirp_kernel[(triton.cdiv(lines * size, 1024),)](
        x,
        y,
        chirps,
        plain(lines),
        plain(n),
        plain(size),
        axis,
        shape,
        strides,
        number_argument(scale, y.dtype),
        SIGN=sign,
        READS=reads,
        WRITES=writes,
        BEFORE=before,
        BLOCK=1024,
    )


def transform(x, y, dims, sizes, forward, normalization, reads="complex", writes="complex"):
    """Compute the discrete Fourier transform of x along `dims` into y.

    The real or hermitian side has that form along the last of `dims` only. A forward real transform therefore
    starts with the last dimension, and a backward one ends with it.

    Args:
        x: Input, as `reads` says.
        y: Result, as `writes` says.
        dims: Dimensions to transform.
        sizes: Transform length per dimension.
        forward: Direction.
        normalization: 0 for none, 1 to divide by the root of the element count, else to divide by that
            number.
        reads: "complex", "real" or "hermitian".
        writes: "complex" or "real".
    """
    n = math.prod(sizes)
    scale = 1.0 if normalization == 0 else 1.0 / math.sqrt(n) if normalization == 1 else 1.0 / n
    order = list(zip(dims, sizes, strict=True))
    if reads == "real":
        order.reverse()
    x, y = [torch.view_as_real(t).select(-1, 0) if t.is_complex() else t for t in (x, y)]
    for place, (d, size) in enumerate(order):
        first, last = place == 0, place == len(order) - 1
        length = y.shape[d] if reads == "real" or last else x.shape[d]
        target = y if last else room(x, d, length, y)
        line_reads = [reads if (reads == "real" and first) or (reads == "hermitian" and last) else "complex"]
        transform_lines(
            x, target, d, size, 1 if forward else -1, scale if last else 1.0, *line_reads, writes if last else "complex"
        )
        x = target


def empty_transform(x, sizes, dims, dtype, exclude_last):
    """Return a new tensor with these sizes and ATen's memory order.

    Dimensions that are not transformed are outermost, in the order of their strides in x. Then follow `dims`,
    sorted likewise, except that the halved last one of a real transform (`exclude_last`) is innermost.
    """
    fixed = dims[-1:] if exclude_last else []
    free = [d for d in dims if d not in fixed]
    outer = sorted([d for d in range(x.dim()) if d not in dims], key=x.stride, reverse=True)
    order = outer + sorted(free, key=x.stride, reverse=True) + fixed
    out = torch.empty([sizes[d] for d in order], dtype=dtype, device=x.device)
    return out.permute([order.index(d) for d in range(x.dim())])


def transformed_dims(x, dims):
    """Return `dims` without negative numbers.

    Raises RuntimeError if there is nothing to transform, or if a dimension is out of range or occurs twice.
    """
    dims = [d + x.dim() if d < 0 else d for d in dims]
    if len({*dims}) != len(dims) or not all([0 <= d < x.dim() for d in dims]) or x.numel() == 0:
        raise RuntimeError(f"a transform of {list(x.shape)} along {dims}")
    return dims
