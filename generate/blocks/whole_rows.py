"""Means and squared deviations for rows that a program holds whole.

The method is the corrected two-pass algorithm (Chan, Golub and LeVeque 1983): the mean is known before
deviations from it are summed.
"""

import triton
import triton.language as tl
from blocks.limits import INT32_MAX, PROCESSORS
from blocks.offsets import merge, plain, plain_value, reach, sixteenths, stride_hint, strided
from blocks.types import compute_types, convert, number_value

# Most fp32 elements that a program holds in registers: 64 for each thread in 16 warps. It holds half as many fp64
# elements.
MAX_WHOLE_ELEMENTS = 32768

WHOLE_TILE = 2048  # least elements per program, so that its 4 warps have 16 for each thread


@triton.jit
def both_added(a, b, other_a, other_b):
    return a + other_a, b + other_b


@triton.jit
def row_moments(x, mask, n, KIND: tl.constexpr):
    """Return each row's mean, squared deviations and count, and the sum for KIND "moments".

    Rows have n elements if the mask is true, and 0 elsewhere. The mean sums x / n, because a sum of large
    elements overflows sooner. The remaining deviation is added to the mean, so equal elements have zero
    deviation, however large they are.
    """
    count = tl.zeros([x.shape[0]], x.dtype) + n
    share = 1 / count
    if KIND == "moments":
        mean, total = tl.reduce((x * share[:, None], x), 1, both_added)
    else:
        mean = tl.sum(x * share[:, None], 1)
    mean += tl.sum(tl.where(mask, x - mean[:, None], 0), 1) * share
    centered = tl.where(mask, x - mean[:, None], 0)
    rest, squares = tl.reduce((centered, centered * centered), 1, both_added)
    # `rest` would be 0 without rounding errors; its square corrects the deviations
    squares -= rest * (rest * share)
    moment_values = mean + rest * share, tl.where(squares < 0, 0, squares), count
    if KIND == "moments":
        moment_values = moment_values + (total,)
    return moment_values


@triton.jit
def whole_rows_kernel(
    x_ptr,
    outs,
    numbers,
    m,
    n,
    count,
    kept_shape,
    kept_stride,
    KIND: tl.constexpr,
    FINISH: tl.constexpr,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    KEPT_HINT: tl.constexpr,
    EVEN: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store FINISH's results for rows with n contiguous elements each, or their moments if FINISH is None.

    Args:
        x_ptr: m rows, read; kept_shape and kept_stride walk from row to row.
        outs: tuple of pointers to results, [m] each, written.
        numbers: further arguments for FINISH, encoded by `number_argument`.
        m: number of rows, encoded by `plain`, as are all integers.
        n: elements per row.
        count: elements that make one result.
        kept_shape: sizes for the walk from row to row; () for a single dimension.
        kept_stride: strides from row to row.
        KIND: "welford", or "moments" to make the sum, too.
        FINISH: device function that makes the results, or None to store the moments.
        COMMON: type to which elements are converted.
        OPMATH: type to compute in.
        KEPT_HINT: `stride_hint` for the walk from row to row.
        EVEN: 16 divides n.
        WIDE: offsets need int64.
        BLOCK_M: rows per program.
        BLOCK_N: lanes per row, at least n.
    """
    m, n = plain_value(m), sixteenths(plain_value(n), EVEN)
    rows = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    offset = strided(rows, kept_shape, kept_stride, KEPT_HINT)[:, None] + cols[None, :]
    x = convert(tl.load(x_ptr + offset, mask=mask, other=0), COMMON).to(OPMATH)
    row_moment_values = row_moments(x, mask, n, KIND)
    if FINISH is None:
        for k in tl.static_range(len(outs)):
            tl.store(outs[k] + rows, row_moment_values[k], mask=rows < m)
    else:
        arguments = ()
        for k in tl.static_range(len(numbers)):
            arguments = arguments + (number_value(numbers[k], OPMATH),)
        results = FINISH(*row_moment_values, plain_value(count), *arguments)
        for k in tl.static_range(len(outs)):
            result = results if len(outs) == 1 else results[k]
            tl.store(outs[k] + rows, convert(result, outs[k].dtype.element_ty), mask=rows < m)


def held_rows(m, n, rows, cols, most):
    """Return (shape, stride, elements) for contiguous rows, or None.

    The result is None if a program cannot hold a row, or if the rows are too few for the device. `rows` and
    `cols` are (shape, strides) by `merge` for the m results and the n elements per result. `most` is the
    largest row.
    """
    # a shorter row leaves lanes of its warp idle, and each processor needs a program
    inner, stride = cols[0][-1] if cols[0] else n, cols[1][0]
    if stride[-1] != 1 or not 32 <= inner <= most or m * n < PROCESSORS * max(inner, WHOLE_TILE):
        return None
    shape, strides = merge([*(rows[0] or (m,)), *cols[0][:-1]], [[*rows[1][0], *stride[:-1]]])
    return shape, strides[0], inner


def launch_whole_rows(kind, finish, x, outs, numbers, sizes, rows, common):
    """Launch `whole_rows_kernel`.

    `sizes` are (rows, elements per row, elements per result), and `rows` is their (shape, stride).
    """
    m, n, _ = sizes
    COMMON, OPMATH = compute_types(common)
    BLOCK_N = triton.next_power_of_2(n)
    BLOCK_M = max(WHOLE_TILE // BLOCK_N, 1)
    whole_rows_kernel[(triton.cdiv(m, BLOCK_M),)](
        x,
        tuple(outs),
        tuple(numbers),
        *[plain(size) for size in sizes],
        tuple([plain(size) for size in rows[0]]),
        tuple([plain(s) for s in rows[1]]),
        KIND=kind,
        FINISH=finish,
        COMMON=COMMON,
        OPMATH=OPMATH,
        KEPT_HINT=stride_hint(rows[0], rows[1], True),
        EVEN=n % 16 == 0,
        WIDE=reach(rows[0] or (m,), [rows[1]]) + BLOCK_M * BLOCK_N > INT32_MAX,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=max(min(BLOCK_M * BLOCK_N // 1024, 16), 4),
    )
