"""Discrete Fourier transforms with power-of-two length, computed in registers for a tile of lines.

Used by `blocks.fourier`. Each thread transforms 16 elements per pass (Stockham autosort, Van Loan 1992, section
1.7). A pass holds element j of its transforms in tensor j of a tuple, and transforms these tensors by
butterflies (section 1.2). Between passes the elements are permuted, but they never leave the program instance.
The inverse direction swaps (re, im) to (im, re).
"""

import triton
import triton.language as tl
from blocks.complex_numbers import complex_product
from blocks.offsets import integer_values, plain_value, strided
from blocks.types import number_value

__all__ = ["BUTTERFLY_TILE", "LARGEST_BUTTERFLY", "butterfly_kernel", "butterfly_radices"]

LARGEST_BUTTERFLY = 16  # largest factor in one pass
BUTTERFLY_TILE = 4096  # complex numbers per program instance
LONGEST_ASIDE = 256  # interleaved lines up to this length: a tile then holds at least 16 neighbors


@triton.jit
def rotated(re, im, E: tl.constexpr):
    """Return (re + i im) exp(-2 pi i E / 16) for E from 0 to 7."""
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
    """Merge pairs of HALF-point transforms, stored one behind the other, into transforms of twice that length."""
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
    """Transform a tuple of up to 16 tensors given in bit-reversed order."""
    for stage in tl.static_range(4):
        if 1 << stage < len(re):
            re, im = doubled(re, im, 1 << stage)
    return re, im


@triton.jit
def reversed_bits(k, RADIX: tl.constexpr):
    """Return k with its bits reversed; k is in [0, RADIX) and has up to four bits."""
    return ((k & 1) * 8 + (k & 2) * 2 + (k & 4) // 2 + (k & 8) // 8) * RADIX // 16


@triton.jit
def butterfly_place(RADIX: tl.constexpr, BLOCK: tl.constexpr, ASIDE: tl.constexpr):
    """Return (transform, column) for each tensor element, for BLOCK transforms with RADIX columns.

    With ASIDE the transforms are interleaved (the transform index varies fastest); otherwise they follow each
    other.
    """
    i = tl.arange(0, RADIX * BLOCK)
    return (i % BLOCK, i // BLOCK) if ASIDE else (i // RADIX, i % RADIX)


@triton.jit
def exchanged(x, OUTER: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr, INNER: tl.constexpr, R: tl.constexpr):
    """Permute a pass's results to the order in which the next pass (R elements) reads them.

    The input holds one tensor [OUTER, COLUMNS / STEP, STEP, INNER] per number of the pass. In the output,
    number k at (i, j) is element (i, k, j) of a transform, and the numbers are in bit-reversed order. Joins,
    one permutation and splits do this, because a tensor tuple cannot be indexed across threads.
    """
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
    """Apply the twiddle factors after a pass of 16, then compute the next pass of R elements.

    STEP elements of a transform are neighbors at this stage.
    """
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
    """Load elements as `read_line` in blocks.transform_passes does, but as pairs, with a stride in complex numbers."""
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
    """Compute one pass with a power-of-two RADIX, as `pass_kernel` in blocks.transform_passes does.

    Args:
        x_ptr: Lines with `length` elements, read; real, or (re, im) pairs, according to READS.
        y_ptr: Lines with `kept` elements, written; real, or (re, im) pairs, according to WRITES.
        twiddles_ptr: exp(-2 pi i k m / RADIX), [16, RADIX / 16, 2], read; None for a RADIX up to 16.
        roots_ptr: [length, 2], twiddle factors between launches, read; None if RADIX is the whole length.
        lines: Line count, encoded by `plain`.
        length: Line length, encoded by `plain`.
        step: Product of the factors in earlier launches, encoded by `plain`: that many transforms are
            neighbors.
        kept: Line elements to store, encoded by `plain`.
        axis: Line strides in x and in y, encoded by `plain`.
        shape: The other dimensions, as for `strided`.
        strides: Their strides in x and in y, in elements (complex numbers on a complex side).
        scale: Factor for the results, encoded by `number_argument`.
        SIGN: 1 for exp(-2 pi i ...), -1 for the inverse direction.
        RADIX: Points per transform, a power of 2.
        READS: "complex", "real" or "hermitian" (see `read_elements`).
        WRITES: "complex" or "real".
        INNER: Neighboring lanes work on neighboring lines.
        BLOCK: Transforms per program instance.
    """
    lines, length, step = plain_value(lines), plain_value(length), plain_value(step)
    axis = integer_values(axis, True)
    ASIDE: tl.constexpr = INNER or roots_ptr is not None
    R: tl.constexpr = 16 if RADIX > 16 else RADIX
    columns = 1 if roots_ptr is None else length // RADIX
    transform_number, k = butterfly_place(RADIX // R, BLOCK, ASIDE)
    c = tl.program_id(0).to(tl.int64) * BLOCK + transform_number
    row, column = (c % lines, c // lines) if INNER else (c // columns, c % columns)
    inside = c < lines * columns
    from_ptr = x_ptr + strided(row, shape, strides[0], 0) * (1 if READS == "real" else 2)
    re, im = (), ()
    # Bit-reversed loads, because `butterflies` takes its input in that order.
    for j in tl.static_range(R):
        at = column + (k + reversed_bits(j, R) * (RADIX // R)) * columns
        a, b = read_elements(from_ptr, at, axis[0], length, inside, READS)
        re = re + (a if SIGN == 1 else b,)
        im = im + (b if SIGN == 1 else a,)
    re, im = butterflies(re, im)
    if RADIX > 256:  # more than two passes of 16
        re, im = next_pass(re, im, twiddles_ptr, RADIX, 1, 16, BLOCK, ASIDE)
        re, im = next_pass(re, im, twiddles_ptr, RADIX, 16, RADIX // 256, BLOCK, ASIDE)
    elif RADIX > 16:
        re, im = next_pass(re, im, twiddles_ptr, RADIX, 1, RADIX // 16, BLOCK, ASIDE)
    transform_number, k = butterfly_place(RADIX // len(re), BLOCK, ASIDE)
    c = tl.program_id(0).to(tl.int64) * BLOCK + transform_number
    row, column = (c % lines, c // lines) if INNER else (c // columns, c % columns)
    before = column // step * step
    to_ptr = y_ptr + strided(row, shape, strides[1], 0) * (1 if WRITES == "real" else 2)
    scale = number_value(scale, y_ptr.dtype.element_ty)
    for j in tl.static_range(len(re)):
        frequency = k + j * (RADIX // len(re))
        at = column + before * (RADIX - 1) + step * frequency
        mask = (c < lines * columns) & (at < plain_value(kept))
        a, b = re[j], im[j]
        if roots_ptr is not None:  # twiddles for the next launch, whose transforms are strided over these results
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
    """Return the factors of n, a power of 2, that one tile transforms at a time.

    That is n itself if a tile holds the line; interleaved lines (`aside`) fit up to LONGEST_ASIDE elements. Otherwise
    the factors are about equal and at most that, so that a tile holds at least 16 neighboring lines.
    """
    bits = 0
    while 1 << bits < n:
        bits += 1
    if n <= (LONGEST_ASIDE if aside else BUTTERFLY_TILE):
        return [n]
    passes = -(-bits // 8)  # 8 bits: a factor is at most LONGEST_ASIDE
    return [1 << (bits * (k + 1) // passes - bits * k // passes) for k in range(passes)]
