"""Reductions: each element is mapped to one or more values, these are combined, and the result is finished.

`kind` names the combination, which is one in blocks/combination.py.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.combination import combined, folded, followed, neutral, spread
from blocks.limits import INT32_MAX, PROCESSORS
from blocks.offsets import TINY_TENSOR, merge, plain, plain_value, reach, sixteenths, stride_hint, strided
from blocks.reduction_tiles import reduction_tile, reduction_warps
from blocks.types import compute_types, convert, number_argument, number_value
from blocks.whole_rows import MAX_WHOLE_ELEMENTS, held_rows, launch_whole_rows

__all__ = ["exponential_share", "index_alone", "reduce", "value_and_index", "with_index"]

# Longest row whose indices are int32. Lanes run beyond the row in its last tile, and in the tile that is loaded
# ahead, by at most 4096 each.
LONGEST_INT32_ROW = INT32_MAX - 2 * 4096


@triton.jit
def zeros_for(inputs, OWN: tl.constexpr, OPMATH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Return a zero tile per input, in the input's OWN dtype or in OPMATH."""
    zeros = ()
    for k in tl.static_range(len(inputs)):
        zeros = zeros + (tl.zeros([BLOCK_M, BLOCK_N], inputs[k].dtype.element_ty if OWN else OPMATH),)
    return zeros


@triton.jit
def elements_at(bases, cols, mask, shape, strides, HINTS: tl.constexpr):
    """Load a tile from each input at these columns."""
    tiles = ()
    for k in tl.static_range(len(bases)):
        tiles = tiles + (tl.load(bases[k] + strided(cols, shape, strides[k], HINTS[k])[None, :], mask=mask, other=0),)
    return tiles


@triton.jit
def reduction_kernel(
    inputs,
    outs,
    numbers,
    m,
    n,
    count,
    steps,
    kept_shape,
    kept_strides,
    reduced_shape,
    reduced_strides,
    KIND: tl.constexpr,
    MAP: tl.constexpr,
    FINISH: tl.constexpr,
    INDEXED: tl.constexpr,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    KEPT_HINTS: tl.constexpr,
    HINTS: tl.constexpr,
    EVEN: tl.constexpr,
    LEAST: tl.constexpr,
    MOST: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Reduce BLOCK_M rows, starting at program_id(0) * BLOCK_M, over part program_id(1) out of n elements.

    Each tile is loaded one step ahead, so its load overlaps with the combination.

    Args:
        inputs: tuple of pointers to m rows with n elements, read.
        outs: tuple of pointers, written: [m] each, or [parts, m] each if FINISH is None.
        numbers: further arguments for MAP and FINISH, encoded by `number_argument`.
        m: number of rows, encoded by `plain`, as are all integers.
        n: reduced elements per row.
        count: elements that make one output, however many parts they come in.
        steps: tiles per part.
        kept_shape: sizes for the walk from row to row; () for a single dimension.
        kept_strides: strides from row to row, per input.
        reduced_shape: sizes for the walk along a row; () for a single dimension.
        reduced_strides: strides along a row, per input.
        KIND: combination in blocks/combination.py.
        MAP: device function that makes the values; None if the inputs are values from earlier parts.
        FINISH: device function that makes the results; None to store the values as one row per part.
        INDEXED: dtype for the index that MAP also takes, or None.
        COMMON: type to which elements are converted.
        OPMATH: type to compute in.
        KEPT_HINTS: `stride_hint` for the walk from row to row, per input.
        HINTS: `stride_hint` for the walk along a row, per input.
        EVEN: (16 divides m, 16 divides n).
        LEAST: least value in the dtype.
        MOST: largest value in the dtype.
        WIDE: offsets need int64.
        BLOCK_M: rows per tile.
        BLOCK_N: elements of each row per tile.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    m, n = sixteenths(plain_value(m), EVEN[0]), sixteenths(plain_value(n), EVEN[1])
    part = plain_value(steps) * BLOCK_N
    rows = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    bases = ()
    for k in tl.static_range(len(inputs)):
        bases = bases + ((inputs[k] + strided(rows, kept_shape, kept_strides[k], KEPT_HINTS[k]))[:, None],)
    arguments = ()
    for k in tl.static_range(len(numbers)):
        arguments = arguments + (number_value(numbers[k], OPMATH),)
    # MAP of zeros gives the values' types, which the neutral values need
    nothing = zeros_for(inputs, MAP is None, OPMATH, BLOCK_M, BLOCK_N)
    if MAP is None:
        values = nothing
    elif INDEXED is not None:
        values = spread(MAP(*nothing, tl.zeros([BLOCK_M, BLOCK_N], INDEXED), *arguments), KIND)
    else:
        values = spread(MAP(*nothing, *arguments), KIND)
    none = neutral(values, KIND, LEAST, MOST)
    acc = none
    begin = tl.program_id(1).to(INDEX) * part
    end = tl.minimum(n, begin + part)
    cols = begin + tl.arange(0, BLOCK_N)
    ahead = elements_at(bases, cols, (rows < m)[:, None] & (cols < n)[None, :], reduced_shape, reduced_strides, HINTS)
    if INDEXED is not None:  # if all elements equal the neutral value, the first index wins
        acc = none[0], tl.broadcast_to((begin + tl.arange(0, BLOCK_N)).to(INDEXED)[None, :], [BLOCK_M, BLOCK_N])
    for start in range(0, part, BLOCK_N):
        cols = begin + start + tl.arange(0, BLOCK_N)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        read = ()
        for k in tl.static_range(len(inputs)):
            read = read + (ahead[k] if MAP is None else convert(ahead[k], COMMON).to(OPMATH),)
        then = cols + BLOCK_N  # this load is in flight while the current tile is combined
        more = (rows < m)[:, None] & (then < end)[None, :]
        ahead = elements_at(bases, then, more, reduced_shape, reduced_strides, HINTS)
        if MAP is None:
            values = read
        elif INDEXED is not None:
            i = tl.broadcast_to(cols.to(INDEXED)[None, :], [BLOCK_M, BLOCK_N])
            values = spread(MAP(*read, i, *arguments), KIND)
        else:
            values = spread(MAP(*read, *arguments), KIND)
        inside = ()
        for k in tl.static_range(len(none)):
            inside = inside + (tl.where(mask, values[k], none[k]),)
        acc = combined(acc, inside, KIND) if MAP is None else followed(acc, inside, start // BLOCK_N, KIND)
    values_folded = folded(acc, KIND)
    if FINISH is None:
        # each part has its own row, so the order of the final combination, and the result, never vary
        for k in tl.static_range(len(outs)):
            tl.store(outs[k] + tl.program_id(1).to(INDEX) * m + rows, values_folded[k], mask=rows < m)
    else:
        results = FINISH(*values_folded, plain_value(count), *arguments)
        for k in tl.static_range(len(outs)):
            result = results if len(outs) == 1 else results[k]
            tl.store(outs[k] + rows, convert(result, outs[k].dtype.element_ty), mask=rows < m)


@triton.jit
def result_of(x, n):
    """Return the value as the result; this is the default FINISH."""
    return x


@triton.jit
def exponential_share(x):
    """Map an element for a softmax whose sum is kept.

    The largest finite number with an infinite count replaces infinity.
    """
    most = 1.7976931348623157e308 if x.dtype.is_fp64() else 3.4028234663852886e38
    infinite = x == float("inf")
    return tl.where(infinite, most, x), tl.where(infinite, x, tl.full(x.shape, 1, x.dtype))


@triton.jit
def with_index(x, i):
    """Map an element and its index for argmax and argmin."""
    return x, i


@triton.jit
def value_and_index(x, i, n):
    return x, i


@triton.jit
def index_alone(x, i, n):
    return i


def reduce(
    kind,
    inputs,
    dim,
    keepdim=False,
    *,
    dtype,
    map=None,
    finish=None,
    numbers=(),
    indexed=False,
    common=None,
    values=None,
):
    """Reduce tensors of one shape over dimensions, and return a new tensor.

    Args:
        kind: Combination in blocks/combination.py.
        inputs: Tensors with one shape.
        dim: Dimensions; None or () for all.
        keepdim: Keep reduced dimensions with size 1.
        dtype: Result dtype; a tuple if `finish` makes several results.
        map: Device function map(*elements, *numbers) that makes the values; by default the elements
            themselves.
        finish: Device function finish(*values, count, *numbers) that makes the results; by default the value.
        numbers: Further arguments for `map` and `finish`.
        indexed: If True, `map` also takes each element's flat index among those reduced, int32 if that holds
            it.
        common: dtype to which elements are converted; `dtype` if None.
        values: dtypes for the combined values; by default the opmath for `common`, with that for indices.

    Returns:
        A new tensor, or a tuple if `dtype` is one.
    """
    multiple = isinstance(dtype, tuple)
    common = (dtype[0] if multiple else dtype) if common is None else common
    x = inputs[0]
    reduced = {d % max(x.dim(), 1) for d in dim} if dim else set(range(x.dim()))
    kept_dims = [d for d in range(x.dim()) if d not in reduced]
    over = [d for d in range(x.dim()) if d in reduced]
    shape = [1 if d in reduced else x.shape[d] for d in range(x.dim()) if keepdim or d in kept_dims]
    outs = [torch.empty(shape, dtype=d, device=x.device) for d in (dtype if multiple else (dtype,))]
    m, n = outs[0].numel(), math.prod([x.shape[d] for d in over])
    rows = merge([x.shape[d] for d in kept_dims], [[t.stride(d) for d in kept_dims] for t in inputs])
    rows = rows if m > 1 else ((), [(0,)] * len(inputs))
    cols = merge([x.shape[d] for d in over], [[t.stride(d) for d in over] for t in inputs])
    if m:
        wide = n > LONGEST_INT32_ROW
        index = (tl.int64 if wide else tl.int32) if indexed else None
        values = values or _value_dtypes(kind, common, torch.int64 if wide else torch.int32)
        settings = (
            kind,
            map or identity,
            finish or result_of,
            [number_argument(v, common) for v in numbers],
            index,
            common,
        )
        _in_parts(settings, inputs, outs, m, n, rows, cols, values)
    return tuple(outs) if multiple else outs[0]


def _value_dtypes(kind, common, index):
    if common in (torch.float16, torch.bfloat16):
        opmath = torch.float32
    else:
        opmath = common if common.is_floating_point or common == torch.int64 else torch.int32
    if kind in ("argmax", "argmin"):
        return opmath, index
    return (opmath,) * {"welford": 3, "softmax": 2, "minmax": 2, "sums": 2, "moments": 4}.get(kind, 1)


def _has_many_values(kind):
    """Return True if each lane holds several values."""
    return kind in ("argmax", "argmin", "welford", "moments")


def _in_parts(how, inputs, outs, m, n, rows, cols, values):
    """Launch two kernels for few outputs with many elements, and one for all other shapes.

    The target is four programs for each processor, or sixteen small ones.
    """
    kind, map, finish, numbers, index, common = how
    multiple = _has_many_values(kind)
    then = kind, None, finish, numbers, None, common
    if kind in ("welford", "moments") and _by_whole_rows(then, inputs[0], outs, (m, n), rows, cols, values):
        return
    elements = 2048 if multiple else min(max(triton.next_power_of_2(m * n // (4 * PROCESSORS)), 2048), 4096)
    BLOCK_M, BLOCK_N, warps = reduction_tile(
        m, n, rows[1][0][-1], cols[1][0][-1], elements, multiple, inputs[0].element_size()
    )
    light = not multiple and len(inputs) <= 2 and all([t.element_size() <= 4 for t in inputs])
    long = light and BLOCK_N >= 1024 and m * n >= TINY_TENSOR and not (m > 1 and rows[1][0][-1] < cols[1][0][-1])
    warps = 4 if long else warps  # a thread has 32 elements of a row, so fewer warps wait for each other
    parts = n // (2 * BLOCK_N) if multiple else n // BLOCK_N if n >= 8 * BLOCK_N else 1
    programs = 16 * PROCESSORS if long and BLOCK_M == 1 else 4 * PROCESSORS
    parts = max(min(programs // triton.cdiv(m, BLOCK_M), parts), 1)
    steps = triton.cdiv(triton.cdiv(n, parts), BLOCK_N)
    parts = triton.cdiv(n, steps * BLOCK_N) if n else 1  # rounding up the steps may leave fewer parts
    if parts == 1:
        _launch_reduction(how, inputs, outs, (m, n, n, steps), rows, cols, (BLOCK_M, BLOCK_N, 1), warps)
        return
    partials = [torch.empty((parts, m), dtype=d, device=outs[0].device) for d in values]
    how = kind, map, None, numbers, index, common
    _launch_reduction(how, inputs, partials, (m, n, n, steps), rows, cols, (BLOCK_M, BLOCK_N, parts), warps)
    _finish_parts(then, partials, outs, (m, parts, n), ((), [(1,)] * len(partials)), ((parts,), [(m,)] * len(partials)))


def _finish_parts(how, partials, outs, sizes, rows, cols):
    """Turn partial values into results; `sizes` is (results, parts per result, elements per result)."""
    m, parts, n = sizes
    BLOCK_N = min(triton.next_power_of_2(parts), 2048)
    elements = min(max(triton.next_power_of_2(m * parts // PROCESSORS), 256), 2048)
    tile = min(triton.next_power_of_2(m), max(elements // BLOCK_N, 1)), BLOCK_N, 1
    warps = reduction_warps(m * parts, tile, _has_many_values(how[0]))
    _launch_reduction(how, partials, outs, (*sizes, triton.cdiv(parts, BLOCK_N)), rows, cols, tile, warps)


def _by_whole_rows(how, x, outs, sizes, rows, cols, values):
    """Compute moments from rows that programs hold whole, then combine the rows of each result.

    Returns True if this path served the call.
    """
    (m, n), wide = sizes, values[0] == torch.float64
    layout = held_rows(m, n, rows, cols, MAX_WHOLE_ELEMENTS // 2 if wide else MAX_WHOLE_ELEMENTS)
    if layout is None:
        return False
    kind, _, finish, numbers, _, common = how
    shape, stride, inner = layout
    parts = n // inner
    partials = outs if parts == 1 else [torch.empty(m * parts, dtype=d, device=x.device) for d in values]
    row_finish = finish if parts == 1 else None
    launch_whole_rows(kind, row_finish, x, partials, numbers, (m * parts, inner, n), (shape, stride), common)
    if parts > 1:
        _finish_parts(
            how, partials, outs, (m, parts, n), ((m,), [(parts,)] * len(partials)), ((), [(1,)] * len(partials))
        )
    return True


def _launch_reduction(how, inputs, outs, sizes, rows, cols, tile, warps):
    kind, map, finish, numbers, index, common = how
    COMMON, OPMATH = compute_types(common)
    BLOCK_M, BLOCK_N, parts = tile
    large = sizes[0] * sizes[1] >= TINY_TENSOR
    counted = sizes[1] + (sizes[3] + 1) * BLOCK_N  # columns beyond the last, too
    least, most = dtype_limits(common)
    reduction_kernel[(triton.cdiv(sizes[0], BLOCK_M), parts)](
        tuple(inputs),
        tuple(outs),
        tuple(numbers),
        *[plain(size) for size in sizes],
        tuple([plain(n) for n in rows[0]]),
        tuple([tuple([plain(s) for s in stride]) if rows[0] else () for stride in rows[1]]),
        tuple([plain(n) for n in cols[0]]),
        tuple([tuple([plain(s) for s in stride]) if cols[0] else () for stride in cols[1]]),
        KIND=kind,
        MAP=map,
        FINISH=finish,
        INDEXED=index,
        COMMON=COMMON,
        OPMATH=OPMATH,
        KEPT_HINTS=tuple([stride_hint(rows[0], stride, large) for stride in rows[1]]),
        HINTS=tuple([stride_hint(cols[0], stride, large) for stride in cols[1]]),
        EVEN=(large and sizes[0] % 16 == 0, large and sizes[1] % 16 == 0),
        LEAST=least,
        MOST=most,
        WIDE=max(reach(*rows) + reach(*cols) + BLOCK_M * BLOCK_N, counted) > INT32_MAX,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=warps,
    )


def dtype_limits(dtype):
    """Return the least and the largest value in a dtype."""
    if dtype.is_floating_point:
        return -math.inf, math.inf
    return (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
