"""Discrete Fourier transforms of a power of 2, of a tile of lines in registers: passes of 16 elements a thread.

A pass (Stockham's autosort, Van Loan 1992, section 1.7) holds element j of its transforms in the tensor j of a tuple,
and transforms these by butterflies (section 1.2). Between passes elements change places, and never leave the program.
The other direction is that of (im, re) in the place of (re, im).
"""

import triton
import triton.language as tl
from blocks.complex_numbers import complex_product
from blocks.offsets import integer_values, plain_value, strided
from blocks.types import number_value

__all__ = ["BUTTERFLY_TILE", "LARGEST_BUTTERFLY", "butterfly_kernel", "butterfly_radices"]

LARGEST_BUTTERFLY = 16  # elements that a pass transforms
BUTTERFLY_TILE = 4096  # complex numbers that a program holds


@triton.jit
def rotated(re, im, E: tl.constexpr):
    """(re + i im) exp(-2 pi i E / 16), E from 0 to 7"""
    if E == 0:
        return re, im
    if E == 2:
        return 0.7071067811865476 * (re + im), 0.7071067811865476 * (im - re)
    if E == 4:
        return im, -re
    if E == 6:
        return 0.7071067811865476 * (im - re), -0.7071067811865476 * (re + im)
    c: tl.constexpr = 0.9238795325112867 if E == 1 or E == 7 else 0.3826834323650898
    s: tl.constexpr = 0.3826834323650898 if E == 1 or E == 7 else 0.9238795325112867
    if E > 4:
        return s * im - c * re, -c * im - s * re
    return c * re + s * im, c * im - s * re


@triton.jit
def doubled(re, im, HALF: tl.constexpr):
    """Transforms of HALF elements, which lie one behind the other, are those of twice as many."""
    new_re, new_im = (), ()
    for first in tl.static_range(0, len(re), 2 * HALF):
        upper_re, upper_im, lower_re, lower_im = (), (), (), ()
        for k in tl.static_range(HALF):
            c, d = rotated(re[first + HALF + k], im[first + HALF + k], k * 8 // HALF)
            upper_re = upper_re + (re[first + k] + c,)
            upper_im = upper_im + (im[first + k] + d,)
            lower_re = lower_re + (re[first + k] - c,)
            lower_im = lower_im + (im[first + k] - d,)
        new_re = new_re + upper_re + lower_re
        new_im = new_im + upper_im + lower_im
    return new_re, new_im


@triton.jit
def butterflies(re, im):
    """The transform of a tuple of up to 16 tensors, which are in the order of their numbers' bits in reverse."""
    for stage in tl.static_range(4):
        if 1 << stage < len(re):
            re, im = doubled(re, im, 1 << stage)
    return re, im


@triton.jit
def reversed_bits(k, RADIX: tl.constexpr):
    """k, from 0 to RADIX - 1, of up to four bits, with these in reverse"""
    return ((k & 1) * 8 + (k & 2) * 2 + (k & 4) // 2 + (k & 8) // 8) * RADIX // 16


@triton.jit
def butterfly_place(RADIX: tl.constexpr, BLOCK: tl.constexpr, ASIDE: tl.constexpr):
    """(transform, column) of what a tensor holds, of BLOCK transforms of RADIX columns. ASIDE: whether these lie aside,
    or else one behind the other."""
    i = tl.arange(0, RADIX * BLOCK)
    return (i % BLOCK, i // BLOCK) if ASIDE else (i // RADIX, i % RADIX)


@triton.jit
def exchanged(x, OUTER: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr, INNER: tl.constexpr, R: tl.constexpr):
    """Results of a pass, [OUTER, COLUMNS / STEP, STEP, INNER] for each number, as the next one of R elements, in the
    order of their numbers' bits in reverse, reads them: number k of (i, j) is element (i, k, j) of a transform."""
    NUMBER: tl.constexpr = len(x)
    for _ in tl.static_range(4):
        if len(x) > 1:
            pairs = ()
            for k in tl.static_range(len(x) // 2):
                pairs = pairs + (tl.join(x[k], x[k + len(x) // 2]),)
            x = pairs
    whole = tl.reshape(x[0], (OUTER, COLUMNS // STEP, STEP, INNER, NUMBER))
    whole = tl.reshape(tl.permute(whole, (0, 1, 4, 2, 3)), (OUTER, R, COLUMNS * NUMBER // R, INNER))
    whole = tl.permute(whole, (0, 2, 3, 1))
    SIZE: tl.constexpr = OUTER * COLUMNS * INNER * NUMBER // R
    x = (tl.reshape(whole, (SIZE, R)),)
    for _ in tl.static_range(4):
        if len(x) < R:
            halves = ()
            for k in tl.static_range(len(x)):
                halves = halves + tl.split(tl.reshape(x[k], (SIZE, R // (2 * len(x)), 2)))
            x = halves
    parts = ()
    for k in tl.static_range(R):
        parts = parts + (tl.reshape(x[k], (SIZE,)),)
    return parts


@triton.jit
def next_pass(
    re,
    im,
    twiddles_ptr,
    RADIX: tl.constexpr,
    STEP: tl.constexpr,
    R: tl.constexpr,
    BLOCK: tl.constexpr,
    ASIDE: tl.constexpr,
):
    """Twiddle factors, and the pass of R elements that follows one of 16, of which STEP lie beside each other."""
    _, column = butterfly_place(RADIX // 16, BLOCK, ASIDE)
    pair = 2 * (column // STEP * STEP)[:, None] + tl.arange(0, 2)[None, :]
    new_re, new_im = (re[0],), (im[0],)
    for k in tl.static_range(1, 16):
        w_re, w_im = tl.split(tl.load(twiddles_ptr + k * (RADIX // 8) + pair))
        t_re, t_im = complex_product(re[k], im[k], w_re, w_im)
        new_re = new_re + (t_re,)
        new_im = new_im + (t_im,)
    OUTER: tl.constexpr = 1 if ASIDE else BLOCK
    INNER: tl.constexpr = BLOCK if ASIDE else 1
    re = exchanged(new_re, OUTER, RADIX // 16, STEP, INNER, R)
    im = exchanged(new_im, OUTER, RADIX // 16, STEP, INNER, R)
    return butterflies(re, im)


@triton.jit
def read_elements(x_ptr, at, stride, length, mask, READS: tl.constexpr):
    """As `read_line` of blocks.fourier, with a stride of complex numbers, which are read as pairs."""
    mirrored = at > length // 2
    if READS == "hermitian":
        at = tl.where(mirrored, length - at, at)
    if READS == "real":
        re = tl.load(x_ptr + at * stride, mask=mask, other=0)
        return re, tl.zeros_like(re)
    pair = (x_ptr + 2 * (at * stride))[:, None] + tl.arange(0, 2)[None, :]
    re, im = tl.split(tl.load(pair, mask=mask[:, None], other=0))
    if READS == "hermitian":
        im = tl.where(mirrored, -im, im)
    return re, im


@triton.jit
def butterfly_kernel(
    x_ptr,
    y_ptr,
    twiddles_ptr,
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
    READS: tl.constexpr,
    WRITES: tl.constexpr,
    INNER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """As `pass_kernel` of blocks.fourier, of a RADIX that is a power of 2. Strides count elements.

    twiddles: exp(-2 pi i k m / RADIX), [16, RADIX / 16, 2], or None up to 16. roots: None where RADIX is the length.
    """
    lines, length, step = plain_value(lines), plain_value(length), plain_value(step)
    axis = integer_values(axis, True)
    ASIDE: tl.constexpr = INNER or roots_ptr is not None
    R: tl.constexpr = 16 if RADIX > 16 else RADIX
    columns = 1 if roots_ptr is None else length // RADIX
    own, k = butterfly_place(RADIX // R, BLOCK, ASIDE)
    c = tl.program_id(0).to(tl.int64) * BLOCK + own
    row, column = (c % lines, c // lines) if INNER else (c // columns, c % columns)
    inside = c < lines * columns
    from_ptr = x_ptr + strided(row, shape, strides[0], 0) * (1 if READS == "real" else 2)
    re, im = (), ()
    for j in tl.static_range(R):
        at = column + (k + reversed_bits(j, R) * (RADIX // R)) * columns
        a, b = read_elements(from_ptr, at, axis[0], length, inside, READS)
        re = re + (a if SIGN == 1 else b,)
        im = im + (b if SIGN == 1 else a,)
    re, im = butterflies(re, im)
    if RADIX > 256:
        re, im = next_pass(re, im, twiddles_ptr, RADIX, 1, 16, BLOCK, ASIDE)
        re, im = next_pass(re, im, twiddles_ptr, RADIX, 16, RADIX // 256, BLOCK, ASIDE)
    elif RADIX > 16:
        re, im = next_pass(re, im, twiddles_ptr, RADIX, 1, RADIX // 16, BLOCK, ASIDE)
    own, k = butterfly_place(RADIX // len(re), BLOCK, ASIDE)
    c = tl.program_id(0).to(tl.int64) * BLOCK + own
    row, column = (c % lines, c // lines) if INNER else (c // columns, c % columns)
    before = column // step * step
    to_ptr = y_ptr + strided(row, shape, strides[1], 0) * (1 if WRITES == "real" else 2)
    scale = number_value(scale, y_ptr.dtype.element_ty)
    for j in tl.static_range(len(re)):
        frequency = k + j * (RADIX // len(re))
        at = column + before * (RADIX - 1) + step * frequency
        mask = (c < lines * columns) & (at < plain_value(kept))
        a, b = re[j], im[j]
        if roots_ptr is not None:
            pair = roots_ptr + 2 * (frequency * before)[:, None] + tl.arange(0, 2)[None, :]
            w_re, w_im = tl.split(tl.load(pair, mask=mask[:, None], other=0))
            a, b = complex_product(a, b, w_re, w_im)
        a, b = (a if SIGN == 1 else b) * scale, (b if SIGN == 1 else a) * scale
        if WRITES == "complex":
            pair = (to_ptr + 2 * (at * axis[1]))[:, None] + tl.arange(0, 2)[None, :]
            tl.store(pair, tl.join(a, b), mask=mask[:, None])
        else:
            tl.store(to_ptr + at * axis[1], a, mask=mask)


def butterfly_radices(n, aside):
    """Factors of n, a power of 2, that a tile takes: n itself, if its lines do not lie aside and it fits; or else
    about equal ones of up to 256, of which a tile holds 16 neighbours or more."""
    bits = 0
    while 1 << bits < n:
        bits += 1
    if n <= (256 if aside else BUTTERFLY_TILE):
        return [n]
    passes = -(-bits // 8)
    return [1 << (bits * (k + 1) // passes - bits * k // passes) for k in range(passes)]
