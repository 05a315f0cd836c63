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
from blocks.butterflies import BUTTERFLY_TILE, LARGEST_BUTTERFLY, butterfly_kernel, butterfly_radices
from blocks.complex_numbers import complex_product
from blocks.elementwise import elementwise, flat_index
from blocks.offsets import integers, plain
from blocks.transform_passes import chirp, chirp_filter, chirp_kernel, pass_kernel, root_of_unity, tile_twiddle
from blocks.types import number_argument

__all__ = ["empty_transform", "transform", "transformed_dims"]

LARGEST = 64  # largest factor in one pass

PASS_TILE = 4096  # complex sums per program instance: 64 columns for the largest factor


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
    for index, radix in enumerate(factors):
        last = index == len(factors) - 1
        target = y if last else room(x, d, n, y)
        kinds = reads if index == 0 else "complex", writes if last else "complex"
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
            num_warps=max(radix * BLOCK // 512, 1),  # 16 complex numbers per thread
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
    for index, radix in enumerate(factors):
        last = index == len(factors) - 1
        target = y if last else room(x, d, n, x if inner else None)
        lines, axis, shape, strides = lines_along(d, source, target)
        ROWS = triton.next_power_of_2(radix)
        BLOCK = max(16, min(PASS_TILE // ROWS, triton.next_power_of_2(lines * (n // radix))))
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
            READS=reads if index == 0 else "complex",
            WRITES=writes if last else "complex",
            INNER=inner,
            BLOCK=BLOCK,
        )
        source, step = target, step * radix


def convolve_lines(x, y, d, n, sign, scale, reads, writes):
    """Compute `transform_lines` for any length as a convolution with a chirp (Bluestein).

    This uses j k = (j^2 + k^2 - (k - j)^2) / 2.
    """
    size = triton.next_power_of_2(2 * n - 1)  # from 2 n - 1 on, the cyclic convolution does not wrap into its result
    chirps = complex_table(chirp, n, x, n)
    filter_ = complex_table(chirp_filter, size, x, n, size)
    response = torch.empty_like(filter_)
    transform_lines(filter_.select(-1, 0), response.select(-1, 0), 0, size, 1)
    first, second = room(x, d, size), room(x, d, size)
    chirp_lines(x, first, d, n, chirps, sign, reads, "complex", True, 1.0)
    transform_lines(first, second, d, size, 1)
    responses = [part.view([size if k == d else 1 for k in range(x.dim())]) for part in response.unbind(-1)]
    parts = [t.as_strided(t.shape, t.stride(), t.storage_offset() + part) for t in (second, first) for part in (0, 1)]
    # The product overwrites `first`, which the transform has read.
    elementwise(complex_product, *parts[:2], *responses, out=tuple(parts[2:]))
    transform_lines(first, second, d, size, -1, 1.0 / size)
    chirp_lines(second, y, d, n, chirps, sign, "complex", writes, False, scale)


def chirp_lines(x, y, d, n, chirps, sign, reads, writes, before, scale):
    """Launch `chirp_kernel` from x to y."""
    lines, axis, shape, strides = lines_along(d, x, y)
    size = y.shape[d]
    BLOCK = 1024
    chirp_kernel[(triton.cdiv(lines * size, BLOCK),)](
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
        BLOCK=BLOCK,
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
    for index, (d, size) in enumerate(order):
        first, last = index == 0, index == len(order) - 1
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
        raise RuntimeError(f"cannot transform {list(x.shape)} along dimensions {dims}")
    return dims
