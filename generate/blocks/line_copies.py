"""Copies that read one input element per output element, in groups that a thread stores at once.

The source line is computed once per group of neighbors in memory. A group lies in one line or reaches into
the next, so each element costs a choice between two lines, its position along the line, and a load. `AXIS`
functions map an output index to an input index, as in blocks/windows.py.
"""

import triton
import triton.language as tl
from blocks.elementwise import SHORT_LAUNCH
from blocks.limits import INT32_MAX
from blocks.offsets import integer_values, integers, plain, plain_value, reach
from blocks.planes import magic_numbers, magic_quotient
from blocks.types import number_value

__all__ = ["copy_lines", "fits_lines"]


@triton.jit
def copied_place(AXIS: tl.constexpr, o, numbers, FLOAT: tl.constexpr):
    """Return the input index along an axis for output index o."""
    floats = ()
    for j in tl.static_range(len(numbers[1])):
        floats = floats + (number_value(numbers[1][j], FLOAT),)
    return AXIS(o, 0, integer_values(numbers[0], True), floats)[0]


@triton.jit
def line_source(
    row, AXIS: tl.constexpr, AXES: tl.constexpr, sizes, by, strides, numbers, JOINED: tl.constexpr, FLOAT: tl.constexpr
):
    """Return the input offset for the line from which a result row is copied.

    Rows run through the first AXES axes, and through the batch and channel dimensions before them, unless
    channels are innermost. JOINED means that batch and channels step as one dimension.
    """
    offset = row * 0
    for k in tl.static_range(AXES - 1, -1, -1):
        outer = magic_quotient(row, by[k + 2])
        index = copied_place(AXIS, row - outer * sizes[k + 2], numbers[k], FLOAT)
        offset += index * strides[k + 2]
        row = outer
    if JOINED:
        offset += row * strides[1]
    elif len(numbers) == AXES:
        offset += row * strides[0]
    else:
        outer = magic_quotient(row, by[1])
        offset += outer * strides[0] + (row - outer * sizes[1]) * strides[1]
    return offset


@triton.jit
def line_copy_kernel(
    x_ptr,
    out_ptr,
    n,
    lines,
    sizes,
    by,
    strides,
    numbers,
    AXIS: tl.constexpr,
    LAST: tl.constexpr,
    JOINED: tl.constexpr,
    WHOLE: tl.constexpr,
    FLOAT: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Copy BLOCK groups of GROUP neighboring elements per program.

    Args:
        x_ptr: [batch, channel, *axes], read with `strides`.
        out_ptr: n elements, dense, written.
        n: Number of output elements, encoded by `plain`.
        lines: Number of output lines, encoded by `plain`.
        sizes: Output sizes (batch, channel, axes), encoded by `plain`.
        by: For each output size, the magic numbers that divide by it.
        strides: Strides of x, in elements, encoded by `plain`.
        numbers: For each axis, the integers and the floating-point numbers for AXIS, encoded.
        AXIS: Function that maps an output index along an axis to an input index.
        LAST: True if channels are innermost in the output.
        JOINED: True if batch and channels step as one dimension.
        WHOLE: True if a line holds whole groups.
        FLOAT: Type of the floating-point numbers.
        GROUP: Neighboring elements that a thread stores at once.
        BLOCK: Groups per program.
    """
    AXES: tl.constexpr = len(numbers)
    INNER: tl.constexpr = 1 if LAST else AXES + 1
    OUTER: tl.constexpr = AXES if LAST else AXES - 1
    n, last_row = plain_value(n), plain_value(lines) - 1
    sizes, strides = integer_values(sizes, True), integer_values(strides, True)
    start = tl.program_id(0) * (BLOCK * GROUP)
    first, lane = (start + tl.arange(0, BLOCK) * GROUP)[:, None], tl.arange(0, GROUP)[None, :]
    row = magic_quotient(first, by[INNER])
    position = first - row * sizes[INNER] + lane
    row = tl.minimum(row, last_row)
    offset = line_source(row, AXIS, OUTER, sizes, by, strides, numbers, JOINED, FLOAT)
    if not WHOLE:
        row = tl.minimum(row + 1, last_row)
        following = line_source(row, AXIS, OUTER, sizes, by, strides, numbers, JOINED, FLOAT)
        beyond = position >= sizes[INNER]
        offset = tl.where(beyond, following, offset)
        position = tl.where(beyond, position - sizes[INNER], position)
    if not LAST:
        position = copied_place(AXIS, position, numbers[AXES - 1], FLOAT)
    x = tl.load(x_ptr + (offset + position * strides[INNER]))
    if start + BLOCK * GROUP <= n:  # a mask that may end within a group would split the vector stores
        tl.store(out_ptr + (first + lane), x)
    else:
        tl.store(out_ptr + (first + lane), x, mask=first + lane < n)


def line_group(dtype):
    """Return how many neighboring elements a thread stores at once: 16 bytes, at most 8 elements."""
    return min(16 // dtype.itemsize, 8)


def fits_lines(x, out, last, axes):
    """Return True if the result is large, its lines hold at least a group, and offsets fit in 32 bits."""
    inner = out.shape[1 if last else -1]
    most = max(out.numel(), reach(x.shape, [x.stride()]), 4 * max([abs(v) for a, _ in axes for v in a]))
    # Lanes beyond the last element, fewer than 4,096, are counted on before the mask applies.
    return out.numel() >= SHORT_LAUNCH and inner >= line_group(out.dtype) and most < INT32_MAX - 4096


def copy_lines(axis, x, out, last, numbers, FLOAT):
    """Fill `out` with the element of x that `axis` selects for each position, which always exists.

    Args:
        axis: Device function that maps an output index along an axis to an input index.
        x: Input tensor, with any strides.
        out: Result; its channels are innermost if `last`, else lines along its last axis are contiguous.
        last: True if the channels of `out` are innermost.
        numbers: Launch arguments for each axis.
        FLOAT: dtype for the floating-point arguments.
    """
    n, inner, GROUP = out.numel(), out.shape[1 if last else -1], line_group(out.dtype)
    BLOCK = 2048 // GROUP  # 16 elements a thread
    line_copy_kernel[(triton.cdiv(n, BLOCK * GROUP),)](
        x,
        out,
        plain(n),
        plain(n // inner),
        integers(out.shape, True),
        tuple([magic_numbers(size) for size in out.shape]),
        integers(x.stride(), True),
        numbers,
        AXIS=axis,
        LAST=last,
        JOINED=not last and x.stride(0) == x.shape[1] * x.stride(1),
        WHOLE=inner % GROUP == 0,
        FLOAT=FLOAT,
        GROUP=GROUP,
        BLOCK=BLOCK,
        num_warps=4,
    )
    return out
