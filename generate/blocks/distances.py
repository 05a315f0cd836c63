"""Distances between rows (cdist) or between all pairs of rows (pdist), and their gradients.

A program instance keeps a distance tile in registers. For gradients it takes BLOCK_M rows and BLOCK_K
columns and loops over all other rows. Norms with an order other than 0, 1, 2 and infinity use powers in fp64.
Pairs are ordered (0, 1), (0, 2), ... (1, 2), ...
"""

import math

import torch
import triton
import triton.language as tl
from blocks.distance_norms import norm_of_terms, norm_slope, norm_term
from blocks.limits import INT32_MAX, SMALL_TENSOR
from blocks.offsets import integer_values, integers, reach, strided, walk
from blocks.types import compute_types, identical_dtypes, number_argument, number_value

__all__ = ["distances", "distances_backward", "first_of_each", "first_pairs", "rows_of_pairs"]

FEW_DISTANCES = 65536  # with fewer, tiles of 32 x 64 would make no more than 32 program instances
MANY_DISTANCES = 4194304  # from here on, tiles of 64 x 128 make at least 512 program instances


@triton.jit
def pair_place(i, j, n):
    """Return the index of rows i and j, in either order, among the pairs of n rows."""
    low, high = tl.minimum(i, j), tl.maximum(i, j)
    return low * n - low * (low + 1) // 2 + high - low - 1


@triton.jit
def column_of(values, columns, k):
    """Return column k of values [columns, ...].

    If a thread holds all columns, the compiler reduces this selection to no operation.
    """
    bits = values.to(tl.int64 if values.dtype.is_fp64() else tl.int32, bitcast=True)
    return tl.sum(tl.where(columns == k, bits, 0), 0).to(values.dtype, bitcast=True)


@triton.jit
def columns_at(x_ptr, start, width, stride, inside, BLOCK_K: tl.constexpr):
    """Load columns from `start` on as [BLOCK_K, ...], with 0 beyond the last one."""
    k = (start + tl.arange(0, BLOCK_K))[:, None, None]
    return tl.load(x_ptr + k * stride, mask=inside & (k < width), other=0)


@triton.jit
def distance_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    sizes,
    batch,
    batch_strides,
    x_strides,
    y_strides,
    p,
    ORDER: tl.constexpr,
    PAIRS: tl.constexpr,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    PLAIN: tl.constexpr,
    TILE: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Compute a distance tile.

    Each thread holds all BLOCK_K columns of its rows, so that it sums alone, without exchange between threads.
    For ORDER "products", a tile with an infinite sum is summed again with terms that are NaN whenever x^2 - 2 x
    y + y^2 does.

    Args:
        x_ptr: [batch, m, columns], read with its strides.
        y_ptr: [batch, n, columns], read with its strides.
        out_ptr: [batch, m, n], or [pairs] with PAIRS, contiguous, written.
        sizes: Rows (m), rows of y (n), columns, pairs.
        batch: Batch shape.
        batch_strides: Batch strides of x and y.
        x_strides: Row and column stride of x.
        y_strides: Row and column stride of y.
        p: Norm order, encoded by `number_argument`.
        ORDER: "0", "1", "2", "inf", "p" or "products".
        PAIRS: Only compute pairs of rows in x.
        OPMATH: Compute type.
        WIDE: Use 64-bit offsets.
        PLAIN: Integers are encoded by `plain`.
        TILE: Rows of x and of y per thread, and threads along each. Row r of a thread is TILE[2] rows behind
            its row r - 1, so that neighboring threads read neighboring rows.
        BLOCK_K: Columns per step.
    """
    RM: tl.constexpr = TILE[0]
    RN: tl.constexpr = TILE[1]
    TM: tl.constexpr = TILE[2]
    TN: tl.constexpr = TILE[3]
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    ACC: tl.constexpr = tl.float64 if ORDER == "p" else OPMATH
    m, n, width, count = integer_values(sizes, PLAIN)
    x_strides, y_strides = integer_values(x_strides, PLAIN), integer_values(y_strides, PLAIN)
    p = number_value(p, tl.float64)
    program = tl.program_id(0).to(INDEX)
    tiles = tl.cdiv(n, RN * TN)
    cols = program % tiles * (RN * TN) + tl.arange(0, RN)[:, None] * TN + tl.arange(0, TN)[None, :]
    program = program // tiles
    tiles = tl.cdiv(m, RM * TM)
    rows = program % tiles * (RM * TM) + tl.arange(0, RM)[:, None] * TM + tl.arange(0, TM)[None, :]
    matrix = program // tiles
    x_ptr += strided(matrix, batch, batch_strides[0], 0, PLAIN) + rows[None, :, :] * x_strides[0]
    y_ptr += strided(matrix, batch, batch_strides[1], 0, PLAIN) + cols[None, :, :] * y_strides[0]
    x_inside, y_inside = (rows < m)[None, :, :], (cols < n)[None, :, :]
    acc = tl.zeros([RM, RN, TM, TN], ACC)
    columns = tl.arange(0, BLOCK_K)[:, None, None, None, None]
    for start in tl.range(0, width, BLOCK_K, num_stages=3):
        x = columns_at(x_ptr, tl.cast(start, INDEX), width, x_strides[1], x_inside, BLOCK_K)
        y = columns_at(y_ptr, tl.cast(start, INDEX), width, y_strides[1], y_inside, BLOCK_K)
        d = x[:, :, None, :, None] - y[:, None, :, None, :]
        for j in tl.static_range(BLOCK_K):
            term = norm_term(column_of(d, columns, j), p, ORDER)
            if ORDER == "p":  # a padding column would add 0^p, which is infinite for p < 0
                term = tl.where(start + j < width, term, 0)
            if ORDER == "inf":
                acc = tl.maximum(acc, term, propagate_nan=tl.PropagateNan.ALL)
            else:
                acc += term
    if ORDER == "products":
        # Other sums are right: an infinite operand makes a sum infinite, or NaN, which it then has to be.
        infinite = tl.sum((acc == float("inf")).to(tl.int32))
        if infinite > 0:
            acc = tl.zeros([RM, RN, TM, TN], ACC)
            for start in range(0, width):
                x = columns_at(x_ptr, tl.cast(start, INDEX), width, x_strides[1], x_inside, 1)[:, :, None, :, None]
                y = columns_at(y_ptr, tl.cast(start, INDEX), width, y_strides[1], y_inside, 1)[:, None, :, None, :]
                endless = (tl.abs(x) == float("inf")) | (tl.abs(y) == float("inf"))
                acc += tl.sum(tl.where(endless, x * x + y * y - 2 * x * y, (x - y) * (x - y)), 0)
    rows, cols = rows[:, None, :, None], cols[None, :, None, :]
    mask = (rows < m) & (cols < n)
    if PAIRS:
        out_offset = pair_place(rows, cols, n)
        mask &= (rows < cols) & (out_offset < count)
    else:
        out_offset = (matrix * m + rows) * n + cols
    tl.store(out_ptr + out_offset, norm_of_terms(acc, p, ORDER).to(OPMATH), mask=mask)


@triton.jit
def distance_backward_kernel(
    grad_ptr,
    x_ptr,
    y_ptr,
    distance_ptr,
    out_ptr,
    sizes,
    batch,
    batch_strides,
    x_strides,
    y_strides,
    grad_strides,
    distance_strides,
    p,
    ORDER: tl.constexpr,
    PAIRS: tl.constexpr,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Compute the gradient for a row tile in x.

    Each program instance loops over all rows of y, so that the sum needs no atomics and has a fixed order.

    Args:
        grad_ptr: [batch, m, n], or [pairs] with PAIRS, read with its strides.
        x_ptr: [batch, m, columns], read with its strides.
        y_ptr: [batch, n, columns], read with its strides.
        distance_ptr: [batch, m, n], or [pairs] with PAIRS, read with its strides.
        out_ptr: [batch, m, columns], contiguous, written.
        sizes: Rows (m), rows of y (n), columns, pairs, encoded by `plain`.
        batch: Batch shape, encoded by `plain`.
        batch_strides: Batch strides of x, y, grad and distance, encoded by `plain`.
        x_strides: Row and column stride of x, encoded by `plain`.
        y_strides: Row and column stride of y, encoded by `plain`.
        grad_strides: Strides of grad behind the batch dimensions, encoded by `plain`.
        distance_strides: Strides of distance behind the batch dimensions, encoded by `plain`.
        p: Norm order, encoded by `number_argument`.
        ORDER: "0", "1", "2", "inf" or "p".
        PAIRS: Both rows of a pair receive its gradient.
        OPMATH: Compute type.
        WIDE: Use 64-bit offsets.
        BLOCK_M: Rows of x per program instance.
        BLOCK_N: Rows of y per step.
        BLOCK_K: Columns per program instance.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    m, n, width, _ = integer_values(sizes, True)
    x_strides, y_strides = integer_values(x_strides, True), integer_values(y_strides, True)
    grad_strides, distance_strides = integer_values(grad_strides, True), integer_values(distance_strides, True)
    p = number_value(p, tl.float64)
    program = tl.program_id(0).to(INDEX)
    tiles = tl.cdiv(width, BLOCK_K)
    k = program % tiles * BLOCK_K + tl.arange(0, BLOCK_K)
    program = program // tiles
    tiles = tl.cdiv(m, BLOCK_M)
    rows = program % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    matrix = program // tiles
    x_ptr += strided(matrix, batch, batch_strides[0], 0)
    y_ptr += strided(matrix, batch, batch_strides[1], 0)
    grad_ptr += strided(matrix, batch, batch_strides[2], 0)
    distance_ptr += strided(matrix, batch, batch_strides[3], 0)
    mask = (rows < m)[:, None] & (k < width)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_strides[0] + k[None, :] * x_strides[1], mask=mask, other=0)
    acc = tl.zeros([BLOCK_M, BLOCK_K], OPMATH)
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(INDEX)
        offset = cols[:, None] * y_strides[0] + k[None, :] * y_strides[1]
        y = tl.load(y_ptr + offset, mask=(cols < n)[:, None] & (k < width)[None, :], other=0)
        both = (rows < m)[:, None] & (cols < n)[None, :]
        if PAIRS:
            pair = pair_place(rows[:, None], cols[None, :], n)
            both &= (rows[:, None] != cols[None, :]) & (rows < n)[:, None]
            grad = tl.load(grad_ptr + pair * grad_strides[0], mask=both, other=0)
            distance = tl.load(distance_ptr + pair * distance_strides[0], mask=both, other=0)
        else:
            offset = rows[:, None] * grad_strides[0] + cols[None, :] * grad_strides[1]
            grad = tl.load(grad_ptr + offset, mask=both, other=0)
            offset = rows[:, None] * distance_strides[0] + cols[None, :] * distance_strides[1]
            distance = tl.load(distance_ptr + offset, mask=both, other=0)
        slope = norm_slope(x[:, None, :] - y[None, :, :], grad[:, :, None], distance[:, :, None], p, ORDER)
        acc += tl.sum(tl.where(both[:, :, None], slope, 0), 1)
    tl.store(out_ptr + (matrix * m + rows)[:, None] * width + k[None, :], acc, mask=mask)


def _order(p, negative):
    """Return the name of the order for the kernels; raise RuntimeError if p is NaN, or negative without permission."""
    if (p < 0 and not negative) or p != p:
        raise RuntimeError(f"distances have no order {p}")
    return {0: "0", 1: "1", 2: "2", math.inf: "inf"}.get(p, "p")


def _constants(order, x, pairs, tensors, n):
    """Return the launch constants except for the tile; n elements need offsets."""
    # 4096: a margin for rows and columns beyond the last
    wide = max([n, *[reach(t.shape, [t.stride()]) for t in tensors]]) > INT32_MAX - 4096
    return order, pairs, compute_types(x.dtype)[1], wide


def _pair_tile(m, n, count, costly):
    """Return (TILE, BLOCK_K) for `distance_kernel`, smaller if terms need many registers (`costly`)."""
    if costly or count < FEW_DISTANCES or min(m, n) < 32:  # 32: the rows of the next tile
        return (2, 2, 8, 16), 4
    each = 4 if count < MANY_DISTANCES else 8
    return (each, each, 8, 16), 8


def _paired_rows(x, y, equal_columns=True):
    """Return x and y expanded to a common batch shape, [..., rows, columns].

    Raises RuntimeError if a tensor has fewer than two dimensions, or (`equal_columns`) if the numbers of
    columns differ.
    """
    identical_dtypes(x, y)
    if x.dim() < 2 or y.dim() < 2 or (equal_columns and x.shape[-1] != y.shape[-1]):
        raise RuntimeError(f"cannot compute distances from {tuple(x.shape)} to {tuple(y.shape)}")
    if x.shape[:-2] == y.shape[:-2]:
        return x, y
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return x.expand(*batch, *x.shape[-2:]), y.expand(*batch, *y.shape[-2:])


def rows_of_pairs(x):
    """Return x as rows, and the pair count n (n - 1) / 2 for n = x.shape[0].

    For more than two dimensions ATen flattens x to rows with x.shape[1] elements and takes the first pairs
    among all of them, so that some rows may be left out.
    """
    if x.dim() < 2:
        raise RuntimeError(f"distances between rows need a matrix, got {tuple(x.shape)}")
    rows = x if x.dim() == 2 or x.numel() == 0 else x.view(-1, x.shape[1])
    return rows, x.shape[0] * (x.shape[0] - 1) // 2


def first_pairs(t, count):
    """Return the first `count` elements of t, one per pair; raise RuntimeError if there are fewer."""
    if t.numel() < count:
        raise RuntimeError(f"expected {count} elements, one for each pair, got {t.numel()}")
    return (t if t.dim() == 1 else t.view(-1)).narrow(0, 0, count)


def first_of_each(t):
    """Return t with index 0 in all dimensions but the first, which is how ATen reads the gradient of pairs."""
    for _ in range(t.dim() - 1):
        t = t.select(1, 0)
    return t


def distances(x, y, p, pairs=None, products=False):
    """Return the distances between the rows in x and in y.

    Args:
        x: [..., rows, columns].
        y: [..., others, columns], with a batch shape that broadcasts.
        p: Norm order.
        pairs: Pair count among the rows in x, which then is y; or None.
        products: Compute Euclidean distances, with infinity and NaN whenever x^2 - 2 x y + y^2 has
            them.

    Returns:
        [..., rows, others], or [pairs].
    """
    x, y = _paired_rows(x, y)
    (m, width), n, dims = x.shape[-2:], y.shape[-2], x.dim() - 2
    shape = [*x.shape[:-1], n] if pairs is None else [pairs]
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    order = "products" if products else _order(p, pairs is not None)
    constants = _constants(order, x, pairs is not None, (x, y), max(out.numel(), m * n))
    if out.numel():
        tile, block = _pair_tile(m, n, out.numel(), order == "p" or x.dtype == torch.float64)
        tiles = triton.cdiv(m, tile[0] * tile[2]) * triton.cdiv(n, tile[1] * tile[3])
        PLAIN = out.numel() < SMALL_TENSOR
        steps = [integers(t.stride()[dims:], PLAIN) for t in (x, y)]
        sizes = integers((m, n, width, pairs or 0), PLAIN)
        number = number_argument(p, torch.float64)
        batch = walk((x, y), range(dims), PLAIN)
        if dims == 0:  # a stride of 0 preserves the compiler's knowledge about addresses
            batch = integers((1,), PLAIN), (integers((0,), PLAIN), integers((0,), PLAIN))
        distance_kernel[(math.prod(x.shape[:dims]) * tiles,)](
            x, y, out, sizes, *batch, *steps, number, *constants, PLAIN, tile, block, num_warps=4
        )
    return out


def distances_backward(grad, x, y, p, distance, pairs=None):
    """Return the contiguous gradient of x from the gradient of `distances`; both rows of a pair receive it.

    It has the broadcast batch shape. If there are no distances, it has the shape of x, as in ATen. For order 0
    nothing is read.

    Args:
        grad: Gradient of the distances.
        x: [..., rows, columns].
        y: [..., others, columns].
        p: Norm order.
        distance: Result of `distances`.
        pairs: Pair count, or None.

    Raises:
        RuntimeError: If the shape of grad or distance does not fit.
    """
    original = x
    x, y = _paired_rows(x, y, p != 0)
    (m, width), n, dims = x.shape[-2:], y.shape[-2], x.dim() - 2
    identical_dtypes(x, grad, distance)
    shape = (*x.shape[:-1], n) if pairs is None else (pairs,)
    fits = p == 0 or all([t.shape == shape for t in (grad, distance)])
    if not fits:
        raise RuntimeError(f"gradient {tuple(grad.shape)} and distances {tuple(distance.shape)} do not fit {shape}")
    if n == 0 or x.numel() == 0:
        x, y, grad, distance, n, dims = original, original, original, original, 0, original.dim() - 2
    elif p == 0:
        y, grad, distance, n = x, x, x, 0
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    tensors = x, y, grad, distance
    constants = _constants(_order(p, True), x, pairs is not None, tensors, max(out.numel(), m * n))
    if out.numel():
        programs = math.prod(x.shape[:dims]) * triton.cdiv(m, 16) * triton.cdiv(width, 16)
        x_steps, y_steps, grad_steps, steps = [integers(t.stride()[dims:], True) for t in tensors]
        batch = walk(tensors, range(dims), True)
        distance_backward_kernel[(programs,)](
            grad,
            x,
            y,
            distance,
            out,
            integers((m, n, width, pairs or 0), True),
            batch[0],
            (batch[1][0], batch[1][1], batch[1][2], batch[1][3]),
            x_steps,
            y_steps,
            grad_steps,
            steps,
            number_argument(p, torch.float64),
            *constants,
            16,
            16,
            16,
            num_warps=8,
        )
    return out
