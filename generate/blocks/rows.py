"""Row operations: combine each row along a dimension, then map its elements with the combined value.

A program takes BLOCK_M rows. Rows that fit its registers are read once; if they are slightly longer than a
power of two, they are read in two pieces. Longer rows are read twice.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.combination import combined, folded, neutral, spread
from blocks.limits import SMALL_TENSOR
from blocks.offsets import TINY_TENSOR, integer, integer_value, small_tile, strided, walk
from blocks.types import compute_types, convert

LONGEST_WARP_ROW = 1024  # elements that one warp holds: 32 per lane


@triton.jit
def load_row(
    bases,
    cols,
    shape,
    strides,
    mask,
    PADDING: tl.constexpr,
    COMMONS: tl.constexpr,
    OPMATH: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Load one value per tensor at these columns, with PADDING outside."""
    values = ()
    for k in tl.static_range(len(bases)):
        x = tl.load(bases[k] + strided(cols, shape, strides[k], False, PLAIN), mask=mask, other=PADDING)
        values = values + (convert(x, COMMONS[k]).to(OPMATH),)
    return values


@triton.jit
def mapped(FUNCTION: tl.constexpr, values, combination, DTYPE: tl.constexpr):
    for k in tl.static_range(len(combination)):
        values = values + (combination[k][:, None],)
    return convert(FUNCTION(*values), DTYPE)


@triton.jit
def rows_kernel(
    inputs,
    out_ptr,
    m,
    n,
    across,
    along,
    KIND: tl.constexpr,
    MAP: tl.constexpr,
    FUNCTION: tl.constexpr,
    PADDING: tl.constexpr,
    COMMONS: tl.constexpr,
    OPMATH: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    REST: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """Combine BLOCK_M rows and store the mapped elements.

    Args:
        inputs: tuple of pointers to m rows with n elements, read.
        out_ptr: m rows with n elements, written.
        m: number of rows, encoded by `integer`.
        n: elements per row, encoded by `integer`.
        across: (shape, strides for each input and the result) from row to row.
        along: (shape, strides for each input and the result) within a row.
        KIND: combination in blocks/combination.py.
        MAP: device function that maps elements to the values that are combined.
        FUNCTION: device function that maps an element's values and its row's combined values to the result.
        PADDING: value for elements beyond the row, which leaves the combination unchanged.
        COMMONS: type to which elements are converted, per input.
        OPMATH: type to compute in.
        PLAIN: integers are encoded by `plain`.
        BLOCK_M: rows per program.
        BLOCK_N: elements of each row per tile.
        REST: lanes for columns beyond BLOCK_N, if rows are WHOLE; 0 for none.
        WHOLE: a row fits the program.
    """
    LAST: tl.constexpr = len(inputs)
    DTYPE: tl.constexpr = out_ptr.dtype.element_ty
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    n = integer_value(n, PLAIN)
    inside = (rows < integer_value(m, PLAIN))[:, None]
    bases = ()
    for k in tl.static_range(LAST):
        bases = bases + ((inputs[k] + strided(rows, across[0], across[1][k], False, PLAIN))[:, None],)
    out_ptr += strided(rows, across[0], across[1][LAST], False, PLAIN)[:, None]
    if WHOLE:
        mask = inside & (lanes < n)
        values = load_row(bases, lanes, along[0], along[1], mask, PADDING, COMMONS, OPMATH, PLAIN)
        combination = folded(spread(MAP(*values), KIND), KIND)
        if REST > 0:
            more = BLOCK_N + tl.arange(0, REST).to(tl.int64)[None, :]
            beyond = inside & (more < n)
            rest_values = load_row(bases, more, along[0], along[1], beyond, PADDING, COMMONS, OPMATH, PLAIN)
            combination = combined(combination, folded(spread(MAP(*rest_values), KIND), KIND), KIND)
            target = strided(more, along[0], along[1][LAST], False, PLAIN)
            tl.store(out_ptr + target, mapped(FUNCTION, rest_values, combination, DTYPE), mask=beyond)
        target = strided(lanes, along[0], along[1][LAST], False, PLAIN)
        tl.store(out_ptr + target, mapped(FUNCTION, values, combination, DTYPE), mask=mask)
    else:
        nothing = ()
        for _ in tl.static_range(LAST):
            nothing = nothing + (tl.zeros([BLOCK_M, BLOCK_N], OPMATH),)
        acc = neutral(spread(MAP(*nothing), KIND), KIND, float("-inf"), float("inf"))
        for start in range(0, n, BLOCK_N):  # invariant: lane j of acc combines columns j, j + BLOCK_N, ... so far
            mask = inside & (start + lanes < n)
            values = load_row(bases, start + lanes, along[0], along[1], mask, PADDING, COMMONS, OPMATH, PLAIN)
            acc = combined(acc, spread(MAP(*values), KIND), KIND)
        combination = folded(acc, KIND)
        for start in range(0, n, BLOCK_N):
            mask = inside & (start + lanes < n)
            values = load_row(bases, start + lanes, along[0], along[1], mask, PADDING, COMMONS, OPMATH, PLAIN)
            target = strided(start + lanes, along[0], along[1][LAST], False, PLAIN)
            tl.store(out_ptr + target, mapped(FUNCTION, values, combination, DTYPE), mask=mask)


@triton.jit
def exponential(x):
    """Map an element for softmax: the element, and its share in the sum if it is the largest."""
    return x, tl.full(x.shape, 1, x.dtype)


def map_rows(function, inputs, dim, *, kind, dtype, map=None, commons=None, longest=8192):
    """Return function(*values, *combined) for each element, in a new tensor.

    Args:
        function: Device function that maps an element's values and its row's combined values.
        inputs: Tensors with one shape.
        dim: Dimension along which rows run.
        kind: Combination in blocks/combination.py. Padding is 0 for sums and -inf otherwise.
        dtype: Result dtype.
        map: Device function that makes the combined values; by default `exponential`.
        commons: dtypes to which the inputs are converted; by default their own.
        longest: Rows with up to this many elements are held whole, and with up to 1024 by one warp.

    Raises:
        RuntimeError: If the inputs differ in shape.
    """
    x = inputs[0]
    if any([t.shape != x.shape for t in inputs]):
        raise RuntimeError(f"inputs have different shapes: {[tuple(t.shape) for t in inputs]}")
    out = torch.empty(x.shape, dtype=dtype, device=x.device)
    if not out.numel():
        return out
    dims = list(range(x.dim()))
    along = dims[dim:][:1]
    n = x.shape[dim] if dims else 1
    m = out.numel() // n
    # if neighboring rows, not a row's elements, share memory sectors, a tile takes many rows
    beside = [x.stride(d) for d in dims if d not in along and x.shape[d] > 1]
    columns = bool(along and beside) and min(beside) < x.stride(dim)
    BLOCK_M, BLOCK_N, REST, warps = _column_tile(m, n, longest) if columns else _row_tile(m, n, longest)
    PLAIN = out.numel() < SMALL_TENSOR
    rows_kernel[(triton.cdiv(m, BLOCK_M),)](
        tuple(inputs),
        out,
        integer(m, PLAIN),
        integer(n, PLAIN),
        walk([*inputs, out], [d for d in dims if d not in along], PLAIN),
        walk([*inputs, out], along, PLAIN),
        KIND=kind,
        MAP=map or exponential,
        FUNCTION=function,
        PADDING=0 if kind == "sum" else -math.inf,
        COMMONS=tuple([compute_types(d)[0] for d in commons or [t.dtype for t in inputs]]),
        OPMATH=compute_types(commons[-1] if commons else x.dtype)[1],
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        REST=REST,
        WHOLE=n <= BLOCK_N + REST,
        num_warps=warps,
    )
    return out


def _row_tile(m, n, longest):
    """Return BLOCK_M, BLOCK_N, REST and warps.

    One warp holds as many rows as make LONGEST_WARP_ROW elements. A row slightly longer than a power of two
    is split into that power and the rest.
    """
    BLOCK_N = triton.next_power_of_2(n)
    if n <= LONGEST_WARP_ROW and m * n < TINY_TENSOR:
        BLOCK_M, BLOCK_N = small_tile(n, LONGEST_WARP_ROW)
        return BLOCK_M, BLOCK_N, 0, 1
    if n <= LONGEST_WARP_ROW:
        REST = max(triton.next_power_of_2(n - BLOCK_N // 2), 8)
        BLOCK_N, REST = (BLOCK_N // 2, REST) if 16 <= REST * 2 <= BLOCK_N // 2 else (BLOCK_N, 0)
        return min(triton.next_power_of_2(m), LONGEST_WARP_ROW // BLOCK_N), BLOCK_N, REST, 1
    return (1, 4096, 0, 8) if longest < BLOCK_N else (1, BLOCK_N, 0, BLOCK_N * 8 // longest)


def _column_tile(m, n, longest):
    """Return the tile for rows whose elements are farther apart than neighboring rows.

    A program takes at least 16 rows, because fewer would not fill a memory sector. Rows are held whole, 16 at
    a time, up to an eighth of `longest`.
    """
    BLOCK_N = triton.next_power_of_2(n)
    if BLOCK_N <= 32 or m * n < TINY_TENSOR:
        return _row_tile(m, n, longest)
    if longest // 8 < BLOCK_N:
        return 32, 64, 0, 8
    BLOCK_M = 32 if longest // 16 >= BLOCK_N else 16
    return BLOCK_M, BLOCK_N, 0, BLOCK_M * BLOCK_N * 8 // longest


def whole_rows(m, n):
    """Return BLOCK_M and BLOCK_N for a program with 8 warps that holds its rows whole."""
    if m * n < TINY_TENSOR and n <= 1024:
        return small_tile(n, 2048)
    BLOCK_N = triton.next_power_of_2(max(n, 1))
    return min(triton.next_power_of_2(max(m, 1)), max(1, 4096 // BLOCK_N)), BLOCK_N


def expanded(tensors):
    """Expand tensors to the first one's shape; None becomes the first tensor itself."""
    return [tensors[0] if t is None else t.expand(tensors[0].shape) for t in tensors]
