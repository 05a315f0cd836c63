"""Several operators in one launch on whole rows: element-wise steps, row reductions, and sums down the columns.

Column sums are added in parts, by a second launch. A function receives a tile per tensor: [BLOCK_M,
BLOCK_N], or [BLOCK_M, 1] for values that are constant along a row, or [1, BLOCK_N] for values that are constant
down a column.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.combination import folded, neutral, spread
from blocks.limits import PROCESSORS, SMALL_TENSOR
from blocks.offsets import integer, integer_value, integers, merge, strided
from blocks.rows import whole_rows
from blocks.types import convert

__all__ = [
    "column_sum",
    "fused_rows",
    "inverse_deviation_of_rows",
    "layer_norm_gradient",
    "folded_rows",
    "shape_reduced",
    "row_dimensions",
    "row_mean",
    "with_ones",
]

LONGEST_ROW = 65536  # elements; a program instance keeps a whole row in registers


@triton.jit
def folded_rows(values, mask, KIND: tl.constexpr, LEAST: tl.constexpr, MOST: tl.constexpr):
    """Reduce each row with KIND from blocks/combination.py and return a tuple of [BLOCK_M, 1].

    `values` are as `spread` takes them; LEAST and MOST bound the first value's type.
    """
    values = spread(values, KIND)
    whole = ()
    for k in tl.static_range(len(values)):
        whole = whole + (tl.broadcast_to(values[k], mask.shape),)
    fillers = neutral(whole, KIND, LEAST, MOST)
    inside = ()
    for k in tl.static_range(len(whole)):
        inside = inside + (tl.where(mask, whole[k], fillers[k]),)
    reduced = folded(inside, KIND)
    results = ()
    for k in tl.static_range(len(reduced)):
        results = results + (reduced[k][:, None],)
    return results


@triton.jit
def column_sum(value, mask):
    """Return the masked values that a tile adds to the column sums."""
    return tl.where(mask, tl.broadcast_to(value, mask.shape), tl.zeros([1, 1], value.dtype))


@triton.jit
def row_mean(x, mask, n):
    """Return each row's mean, and 0 for an empty row, as in ATen."""
    x = tl.where(mask, tl.broadcast_to(x, mask.shape), 0)
    return tl.where(n > 0, tl.sum(x, 1) / n, 0)[:, None]


@triton.jit
def inverse_deviation_of_rows(x, mean, mask, n, eps):
    """Return 1 / sqrt(variance + eps) for each row."""
    centered = tl.where(mask, x - mean, 0)
    variance = (tl.sum(centered * centered, 1) / n)[:, None]
    return divide(tl.zeros_like(variance) + 1, root(variance + eps))


@triton.jit
def layer_norm_gradient(g, xhat, rstd, mask, n):
    """Return rstd * (g - mean(g) - xhat * mean(g * xhat)).

    g is the output gradient times the weight, and xhat the normalized input.
    """
    return rstd * (g - row_mean(g, mask, n) - xhat * row_mean(g * xhat, mask, n))


@triton.jit
def load_tile_of(x_ptr, across, along, mask, rows_inside, cols_inside, some, LEVEL: tl.constexpr):
    """Load a tile with one of four shapes.

    LEVEL is 0 for a single value, 1 for a value per row, 2 for a value per column, and 3 for a full tile.
    `some` is True if rows have elements.
    """
    if LEVEL == 0:
        x = tl.load(x_ptr + tl.zeros([1, 1], tl.int32), mask=some, other=0)
    elif LEVEL == 1:
        x = tl.load(x_ptr + across[:, None], mask=rows_inside & some, other=0)
    elif LEVEL == 2:
        x = tl.load(x_ptr + along[None, :], mask=cols_inside, other=0)
    else:
        x = tl.load(x_ptr + across[:, None] + along[None, :], mask=mask, other=0)
    return x


@triton.jit
def fused_rows_kernel(
    inputs,
    outs,
    parts,
    m,
    n,
    across,
    along,
    PROGRAM: tl.constexpr,
    LEVELS: tl.constexpr,
    PLAIN: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute every num_programs-th row tile.

    Args:
        inputs: Tuple of pointers to tensors with m rows of n elements, read.
        outs: Tuple of pointers to tensors with m rows of n elements, or with one element per row, written.
        parts: For each column sum, [programs, n], contiguous, written.
        m: Number of rows.
        n: Elements per row.
        across: (shape, strides) from row to row, for each input and output.
        along: (shape, strides) in a row, for each input and output.
        PROGRAM: Triton function (*tiles, mask, n) that returns values for `outs`, then for the column sums.
        LEVELS: LEVEL of each input and output, see `load_tile_of`.
        PLAIN: True if integers are encoded by `plain`.
        ACC: Type of the column sums.
        BLOCK_M: Rows per tile.
        BLOCK_N: Row length, rounded up to a power of 2.
    """
    m, n = integer_value(m, PLAIN), integer_value(n, PLAIN)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    cols_inside = (cols < n)[None, :]
    sums = ()
    for _ in tl.static_range(len(parts)):
        sums = sums + (tl.zeros([BLOCK_M, BLOCK_N], ACC),)
    # Column sums stay in registers over all tiles of a program instance and are stored once, at the end.
    for tile in range(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.num_programs(0)):
        rows = tile * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
        rows_inside = (rows < m)[:, None]
        mask = rows_inside & cols_inside
        values = ()
        for k in tl.static_range(len(inputs)):
            down = strided(rows, across[k][0], across[k][1], False, PLAIN)
            right = strided(cols, along[k][0], along[k][1], False, PLAIN)
            values = values + (load_tile_of(inputs[k], down, right, mask, rows_inside, cols_inside, n > 0, LEVELS[k]),)
        results = PROGRAM(*values, mask, n)
        for k in tl.static_range(len(outs)):
            down = strided(rows, across[len(inputs) + k][0], across[len(inputs) + k][1], False, PLAIN)
            value = convert(results[k], outs[k].dtype.element_ty)
            if LEVELS[len(inputs) + k] == 1:
                tl.store(outs[k] + down[:, None], value, mask=rows_inside)
            else:
                right = strided(cols, along[len(inputs) + k][0], along[len(inputs) + k][1], False, PLAIN)
                value = tl.broadcast_to(value, mask.shape)
                tl.store(outs[k] + down[:, None] + right[None, :], value, mask=mask)
        added = ()
        for k in tl.static_range(len(parts)):
            added = added + (sums[k] + results[len(outs) + k].to(ACC),)
        sums = added
    for k in tl.static_range(len(parts)):
        tl.store(parts[k] + tl.program_id(0).to(tl.int64) * n + cols, tl.sum(sums[k], 0), mask=cols < n)


@triton.jit
def fused_columns_kernel(
    parts,
    outs,
    count,
    m,
    n,
    FINISH: tl.constexpr,
    PLAIN: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Add the partial column sums, and compute FINISH(*sums, m) for each column.

    Args:
        parts: For each sum, [count, n], contiguous, read.
        outs: For each value from FINISH, [n], contiguous, written.
        count: Number of parts.
        m: Number of rows that the sums cover.
        n: Number of columns.
        FINISH: Triton function (*sums, m) that returns a tuple with a value per output.
        PLAIN: True if integers are encoded by `plain`.
        ACC: Type of the sums.
        BLOCK_M: Parts per step.
        BLOCK_N: Columns per program instance.
    """
    count, m, n = integer_value(count, PLAIN), integer_value(m, PLAIN), integer_value(n, PLAIN)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = ()
    for k in tl.static_range(len(parts)):
        total = tl.zeros([BLOCK_M, BLOCK_N], ACC)
        for start in range(0, count, BLOCK_M):
            rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
            mask = (rows < count)[:, None] & (cols < n)[None, :]
            total += tl.load(parts[k] + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)
        sums = sums + (tl.sum(total, 0),)
    results = FINISH(*sums, m)
    for k in tl.static_range(len(outs)):
        tl.store(outs[k] + cols, convert(results[k], outs[k].dtype.element_ty), mask=cols < n)


def fused_rows(program, inputs, outs, row_outs=(), columns=None, double=False):
    """Compute program(*tiles, mask, n), a tuple with values for `outs`, `row_outs` and the column sums.

    Args:
        program: Triton function.
        inputs: (tensor, dimensions that form a row) for each input.
        outs: The same for each output. All inputs and outputs have the same row count and row length.
        row_outs: Contiguous tensors with one element per row.
        columns: (count, finish, outs): finish(*sums, m) computes the contiguous outs, with one element per
            column.
        double: Accumulate in fp64.

    Raises:
        NotImplementedError: If rows are longer than 65536 elements.
    """
    x, row = outs[0] if outs else inputs[0]
    m, n = _row_sizes(x, row)
    if n > LONGEST_ROW:
        raise NotImplementedError(f"a row has {n} elements, more than {LONGEST_ROW}")
    steps = [_row_steps(t, dims, (m, n)) for t, dims in (*inputs, *outs)]
    BLOCK_M, BLOCK_N = whole_rows(m, n)
    PLAIN = x.numel() < SMALL_TENSOR
    tensors = [t for t, _ in outs]
    device = x.device
    programs = max(triton.cdiv(m, BLOCK_M), 1)
    parts = []
    if columns is not None:
        programs = min(programs, 8 * PROCESSORS)  # each one stores a part, and a second launch adds all parts
        sum_dtype = torch.float64 if double else torch.float32
        parts = [torch.empty((programs, n), dtype=sum_dtype, device=device) for _ in range(columns[0])]
    row_entry = ((integers((m,), PLAIN), integers((1,), PLAIN)), (integers((1,), PLAIN), integers((0,), PLAIN)), 1)
    arguments = [(_row_arguments(rows, PLAIN), _row_arguments(cols, PLAIN), level) for rows, cols, level in steps]
    arguments += [row_entry] * len(row_outs)
    levels = [level if k < len(inputs) else 3 for k, (_, _, level) in enumerate(arguments[: len(steps)])]
    fused_rows_kernel[(programs,)](
        tuple([t for t, _ in inputs]),
        (*tensors, *row_outs),
        tuple(parts),
        integer(m, PLAIN),
        integer(n, PLAIN),
        tuple([rows for rows, _, _ in arguments]),
        tuple([cols for _, cols, _ in arguments]),
        PROGRAM=program,
        LEVELS=(*levels, *[1] * len(row_outs)),
        PLAIN=PLAIN,
        ACC=tl.float64 if double else tl.float32,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=4 if BLOCK_N <= 1024 else 8 if BLOCK_N <= 8192 else 16,
    )
    if columns is not None:
        sizes = integer(programs, PLAIN), integer(m, PLAIN), integer(n, PLAIN)
        width = 16
        fused_columns_kernel[(triton.cdiv(n, width),)](
            tuple(parts),
            tuple(columns[2]),
            *sizes,
            FINISH=columns[1],
            PLAIN=PLAIN,
            ACC=tl.float64 if double else tl.float32,
            BLOCK_M=256,
            BLOCK_N=width,
            num_warps=8,
        )


def _row_sizes(t, row):
    """Return (rows, elements per row)."""
    n = math.prod([t.shape[d] for d in row])
    return math.prod([size for d, size in enumerate(t.shape) if d not in row]), n


def _row_steps(t, row, sizes):
    """Return ((shape, stride) from row to row, the same in a row, LEVEL for `load_tile_of`)."""
    if _row_sizes(t, row) != sizes:
        raise RuntimeError(f"rows and elements {_row_sizes(t, row)} differ from {sizes}")
    steps, level = [], 0
    for k, dims in enumerate(([d for d in range(t.dim()) if d not in row], list(row))):
        shape, strides = merge([t.shape[d] for d in dims], [[t.stride(d) for d in dims]])
        steps.append((shape or (sizes[k],), strides[0]))
        level += (k + 1) * any([t.shape[d] > 1 and t.stride(d) != 0 for d in dims])
    return steps[0], steps[1], level


def _row_arguments(steps, PLAIN):
    """Encode (shape, stride) as launch arguments."""
    shape, stride = steps
    return integers(shape, PLAIN), integers(stride, PLAIN)


def row_dimensions(rank, dims, along):
    """Return the dimensions that form a row: `dims` (all if empty) if `along`, else the other ones."""
    named = [d % max(rank, 1) for d in dims] if dims else range(rank)
    return tuple([d for d in range(rank) if (d in named) == along])


def shape_reduced(shape, dims, keepdim):
    """Return the shape after a reduction along `dims`, or along all if empty."""
    named = [d % max(len(shape), 1) for d in dims] if dims else range(len(shape))
    return tuple([1 if d in named else n for d, n in enumerate(shape) if keepdim or d not in named])


def with_ones(t, row):
    """Return t with dimensions of size 1 inserted at the positions in `row`."""
    for d in row:
        t = t.unsqueeze(d)
    return t
