"""Regions: part of the result is another tensor, shifted, with steps or reversed; the rest is filled.

The fill is a number or a third tensor. One kernel processes the result in tiles of rows and columns.
"""

import triton
import triton.language as tl
from blocks.limits import INT32_MAX, SMALL_TENSOR
from blocks.offsets import TINY_TENSOR, integer, integer_value, integers, small_tile
from blocks.types import compute_types, convert, number_argument, number_value


@triton.jit
def region_index(i, start, step, size, WRAP: tl.constexpr, STEPPED: tl.constexpr):
    """Return (i - start) / step, and True if that is an index into the source."""
    i = i - start
    if WRAP:
        i = tl.where(i < 0, i + size, i)
    valid = i >= 0
    if STEPPED:
        valid = valid & (i % step == 0)
        i = i // step
    return i, valid & (i < size)


@triton.jit
def region_kernel(
    source_ptr,
    other_ptr,
    out_ptr,
    number,
    first,
    m,
    shape,
    starts,
    steps,
    sizes,
    strides,
    OPMATH: tl.constexpr,
    WRAP: tl.constexpr,
    STEPPED: tl.constexpr,
    WIDE: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store one [BLOCK_M, BLOCK_N] tile from the source region and the fill.

    Args:
        source_ptr: tensor that the region shows, read from element `first` on.
        other_ptr: tensor that fills the rest, in the result's shape, read, or None to use `number`.
        out_ptr: m rows of the result, written.
        number: fill value, encoded by `number_argument`.
        first: source offset at index 0, in elements; reversed dimensions begin at their end.
        m: number of result rows, over all dimensions but the last.
        shape: result shape, columns last.
        starts: first result index of the region, per dimension.
        steps: result indices from one source element to the next, per dimension.
        sizes: source sizes, per dimension.
        strides: strides per dimension for source, result and, unless it is None, other.
        OPMATH: type in which `number` is decoded.
        WRAP: indices are modulo the size.
        STEPPED: a step differs from 1.
        WIDE: offsets need int64.
        PLAIN: integers are encoded by `plain`.
        BLOCK_M: rows per tile.
        BLOCK_N: columns per tile.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    DTYPE: tl.constexpr = out_ptr.dtype.element_ty
    LAST: tl.constexpr = len(shape) - 1
    n = integer_value(shape[LAST], PLAIN)
    across = tl.cdiv(n, BLOCK_N)
    row = (tl.program_id(0) // across).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = (tl.program_id(0) % across).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < integer_value(m, PLAIN))[:, None] & (col < n)[None, :]
    read, write, other = tl.zeros_like(row), tl.zeros_like(row), tl.zeros_like(row)
    inside = row >= 0
    for k in tl.static_range(LAST - 1, -1, -1):
        i = row
        if k > 0:
            i = row % integer_value(shape[k], PLAIN)
            row = row // integer_value(shape[k], PLAIN)
        start, step, size = starts[k], steps[k], integer_value(sizes[k], PLAIN)
        j, valid = region_index(i, integer_value(start, PLAIN), integer_value(step, PLAIN), size, WRAP, STEPPED)
        inside = inside & valid
        read += j * integer_value(strides[0][k], PLAIN)
        write += i * integer_value(strides[1][k], PLAIN)
        if other_ptr is not None:
            other += i * integer_value(strides[2][k], PLAIN)
    start, step, size = starts[LAST], steps[LAST], integer_value(sizes[LAST], PLAIN)
    j, valid = region_index(col, integer_value(start, PLAIN), integer_value(step, PLAIN), size, WRAP, STEPPED)
    chosen = mask & inside[:, None] & valid[None, :]
    read = integer_value(first, PLAIN) + read[:, None] + (j * integer_value(strides[0][LAST], PLAIN))[None, :]
    x = convert(tl.load(source_ptr + read, mask=chosen, other=0), DTYPE)
    if other_ptr is None:
        y = convert(number_value(number, OPMATH), DTYPE)
    else:
        other = other[:, None] + (col * integer_value(strides[2][LAST], PLAIN))[None, :]
        y = convert(tl.load(other_ptr + other, mask=mask & ~chosen, other=0), DTYPE)
    write = write[:, None] + (col * integer_value(strides[1][LAST], PLAIN))[None, :]
    tl.store(out_ptr + write, tl.where(chosen, x, y), mask=mask)


def arranged(source, out, starts=None, steps=None, number=0, other=None, wrap=False, reverse=()):
    """Fill `out` with source[(i - starts) / steps] if that is an index, else with the number or `other`.

    Args:
        source: Tensor that the region shows.
        out: Result tensor, returned.
        starts: First index per dimension; zeros if None.
        steps: Step per dimension; ones if None.
        number: Fill value.
        other: Tensor that fills the rest instead, in the result's shape, or None.
        wrap: Take indices modulo the sizes, which equal those in `out`.
        reverse: Dimensions to read backward.
    """
    if not out.numel():
        return out
    starts, steps = starts or [0] * out.dim(), steps or [1] * out.dim()
    tensors = [source, out] if other is None else [source, out, other]
    first = sum([(source.shape[d] - 1) * source.stride(d) for d in reverse])
    dims = []
    # dimensions in the result's memory order, so that its stores are contiguous
    for d in sorted(range(out.dim()), key=out.stride, reverse=True):
        strides = [t.stride(d) for t in tensors]
        strides[0] *= -1 if d in reverse else 1
        _add_dimension(dims, (out.shape[d], starts[d], steps[d], source.shape[d], strides))
    shape, starts, steps, sizes, strides = zip(*(dims or [(1, 0, 1, 1, [0] * len(tensors))]), strict=True)
    n = shape[-1]
    m = out.numel() // n
    BLOCK_M, BLOCK_N = small_tile(n, 1024)
    if m * n >= TINY_TENSOR:
        BLOCK_N = min(triton.next_power_of_2(n), 1024)
        BLOCK_M = min(triton.next_power_of_2(m), 2048 // BLOCK_N)
    PLAIN = out.numel() < SMALL_TENSOR
    # offsets are computed for lanes outside the source too, before they are masked
    extents = [[max(a, b + s) for a, b, s in zip(shape, sizes, starts, strict=True)]] * len(tensors)
    largest_offset = max([sum([n * abs(s[k]) for n, s in zip(e, strides, strict=True)]) for k, e in enumerate(extents)])
    region_kernel[(triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)](
        source,
        other,
        out,
        number_argument(number, out.dtype),
        integer(first, PLAIN),
        integer(m, PLAIN),
        integers(shape, PLAIN),
        integers(starts, PLAIN),
        integers(steps, PLAIN),
        integers(sizes, PLAIN),
        tuple([integers([s[k] for s in strides], PLAIN) for k in range(len(tensors))]),
        OPMATH=compute_types(out.dtype)[1],
        WRAP=wrap,
        STEPPED=any([step != 1 for step in steps]),
        WIDE=max(largest_offset, out.numel()) > INT32_MAX - BLOCK_M * BLOCK_N,
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=max(1, min(BLOCK_M * BLOCK_N // 256, 8)),
    )
    return out


def _add_dimension(dims, dim):
    """Append (shape, start, step, size, strides) to `dims`, merged with the last one if possible.

    A dimension that is taken whole can merge with the one before it.
    """
    n, start, step, size, strides = dim
    whole = start == 0 and step == 1 and size == n
    if whole and n == 1:
        return
    if dims and whole and dims[-1][2] == 1 and dims[-1][4] == [stride * n for stride in strides]:
        shape, start, _, size, _ = dims.pop()
        dims.append((shape * n, start * n, 1, size * n, strides))
    else:
        dims.append(dim)


def slice_bounds(size, start, end, step):
    """Return a slice's first index and length; raise RuntimeError for a step below 1."""
    if step < 1:
        raise RuntimeError(f"slice step must be positive, got {step}")
    start, end = [min(max(v + size if v < 0 else v, 0), size) for v in (start or 0, size if end is None else end)]
    return start, max(triton.cdiv(end - start, step), 0)


def sliced(source, out, dim, start, end, step, other=None):
    """Fill `out` with the source at a slice along dim, and with `other` elsewhere.

    The source has the slice's shape or expands to it.
    """
    dim = dim % out.dim()
    first, length = slice_bounds(out.shape[dim], start, end, step)
    source = source.expand([*out.shape[:dim], length, *out.shape[dim + 1 :]])
    before, after = [0] * dim, [0] * (out.dim() - dim - 1)
    return arranged(source, out, [*before, first, *after], [*[1] * dim, step, *[1] * len(after)], other=other)


def selected(source, out, dim, index, other=None):
    """Fill `out` with the source, which lacks dim, at one index along dim; raise IndexError if it is out of bounds."""
    size = out.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range for dimension {dim} with size {size}")
    index, dim = index % size, dim % out.dim()
    return sliced(source.unsqueeze(dim), out, dim, index, index + 1, 1, other)
