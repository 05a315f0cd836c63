"""The one-sided Jacobi method: columns of a matrix are turned, two at a time, until all are orthogonal.

A program takes a matrix that has no fewer rows than columns, and turns disjoint pairs together. Columns times their
rotations are U S, with the rotations V: A V = U S. Of a symmetric matrix that has no negative eigenvalues U is V, and
any other is made one by adding a number to its diagonal, which Gershgorin's theorem tells. Golub and Van Loan,
Matrix Computations, 2013, sections 7.2.1, 8.5.5 and 8.6.3; Drmac and Veselic, New fast and accurate
Jacobi SVD algorithm, 2008.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import integers, plain_value, strided, walk
from blocks.substitution import column_major


@triton.jit
def partners(turn, lanes, count):
    """The columns of each pair in one of count - 1 turns, in which each of `count` columns, an even number, meets each
    other: the last one stays, the others go around in a circle. The last one is the second of its pair. Of lanes from
    count // 2 on they mean nothing."""
    lanes = lanes.to(tl.int64)
    around = count - 1
    first, second = turn - lanes, turn + lanes
    first = tl.where(first < 0, first + around, first)
    second = tl.where(second < around, second, second - around)
    return first, tl.where(lanes == 0, around, second)


@triton.jit
def rotation(p, q, pq, turns):
    """(sine, tangent of half the angle) of the angle, at most pi / 4, that makes 0 of pq in [[p, pq], [pq, q]], or is 0
    where it does not turn. Columns x and y become x - sine (y + half x) and y + sine (x - half y), which keeps lengths
    where the cosine would be rounded to 1."""
    ratio = (q - p) / tl.where(turns, 2 * pq, 1.0)
    tangent = 1.0 / (tl.abs(ratio) + tl.sqrt(1 + ratio * ratio))
    tangent = tl.where(turns, tl.where(ratio < 0, -tangent, tangent), 0.0)
    half = tangent / (1 + tl.sqrt(1 + tangent * tangent))
    return 2 * half / (1 + half * half), half


@triton.jit
def power_near(size, KIND: tl.constexpr, LIMIT: tl.constexpr):
    """A power of 2 that makes the size, which is not negative, one from 1 to 2, as far as 2^LIMIT can."""
    exponent = -tl.floor(tl.log2(tl.where(size > 0, size, 1.0)))
    return tl.exp2(tl.minimum(tl.maximum(exponent, -LIMIT), LIMIT)).to(KIND)


@triton.jit
def place_in(i, m, height, a_stride, SYMMETRIC: tl.constexpr):
    """Where element i of columns of this height lies in a. SYMMETRIC: of which the lower triangle is read."""
    row, column = i % height, i // height
    if SYMMETRIC:
        row, column = tl.maximum(row, column), tl.minimum(row, column)
    return row * a_stride[0] + column * a_stride[1]


@triton.jit
def take_matrix(
    a_ptr, x_ptr, m, height, size, a_stride, LIMIT: tl.constexpr, SYMMETRIC: tl.constexpr, BLOCK: tl.constexpr
):
    """The matrix times a power of 2, which is returned, above the identity: columns of this height, `size` elements."""
    KIND: tl.constexpr = x_ptr.dtype.element_ty
    top = tl.zeros([], KIND)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = (i < size) & (i % height < m)
        a = tl.load(a_ptr + place_in(i, m, height, a_stride, SYMMETRIC), mask=mask, other=0.0)
        top = tl.maximum(top, tl.max(tl.abs(a), 0))
    scale = power_near(top, KIND, LIMIT)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = (i < size) & (i % height < m)
        a = tl.load(a_ptr + place_in(i, m, height, a_stride, SYMMETRIC), mask=mask, other=0.0)
        one = (i % height - m == i // height).to(KIND)
        tl.store(x_ptr + i, tl.where(i % height < m, a * scale, one), mask=i < size)
    return scale


@triton.jit
def gershgorin_shift(x_ptr, n, height, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    """A number that is added to the diagonal of a symmetric matrix, so that no eigenvalue is negative."""
    least = tl.zeros([], x_ptr.dtype.element_ty)
    for start in range(0, n, PAIRS):
        columns = start + tl.arange(0, PAIRS)
        bound = tl.zeros([PAIRS], x_ptr.dtype.element_ty)
        for down in range(0, n, ROWS):
            rows = down + tl.arange(0, ROWS)
            mask = (rows < n)[:, None] & (columns < n)[None, :]
            x = tl.load(x_ptr + rows[:, None] + (columns.to(tl.int64) * height)[None, :], mask=mask, other=0.0)
            bound += tl.sum(tl.where(rows[:, None] == columns[None, :], -x, tl.abs(x)), 0)
        least = tl.maximum(least, tl.max(bound, 0))
    tl.debug_barrier()
    for start in range(0, n, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        diagonal = tl.load(x_ptr + rows * (height + 1), mask=rows < n, other=0.0)
        tl.debug_barrier()  # several threads may have loaded an element, of which one stores it
        tl.store(x_ptr + rows * (height + 1), diagonal + least, mask=rows < n)
    return least


@triton.jit
def multiply_again(a_ptr, x_ptr, n, height, a_stride, scale, added, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    """Columns x of a symmetric matrix from those below them, without the errors of all turns: (scale a + added) v."""
    for right in range(0, n, PAIRS):
        lanes = right + tl.arange(0, PAIRS)
        columns = x_ptr + lanes.to(tl.int64) * height
        for down in range(0, n, ROWS):
            rows = down + tl.arange(0, ROWS).to(tl.int64)
            mask = (rows < n)[:, None] & (lanes < n)[None, :]
            place = columns[None, :] + rows[:, None]
            total = added * tl.load(place + n, mask=mask, other=0.0)
            for k in range(0, n):
                lower = tl.maximum(rows, k) * a_stride[0] + tl.minimum(rows, k) * a_stride[1]
                a = tl.load(a_ptr + lower, mask=rows < n, other=0.0) * scale
                v = tl.load(columns + n + k, mask=lanes < n, other=0.0)
                total += a[:, None] * v[None, :]
            tl.store(place, total, mask=mask)


@triton.jit
def turn_pairs(
    x_ptr, turn, m, n, height, NEAR: tl.constexpr, LEAST: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr
):
    """How many pairs of a turn were not orthogonal: the product of their first m elements counts beside their lengths,
    by NEAR, and beside the longer one and 1, by LEAST."""
    found = tl.zeros([], tl.int32)
    half = (n + 1) // 2
    for start in range(0, half, PAIRS):
        lanes = start + tl.arange(0, PAIRS)
        p, q = partners(turn, lanes, 2 * half)
        pairs = (lanes < half) & (q < n)
        first, second = x_ptr + (p * height)[None, :], x_ptr + (q * height)[None, :]
        xx = tl.zeros([PAIRS], x_ptr.dtype.element_ty)
        yy, xy = xx, xx
        for down in range(0, m, ROWS):
            rows = (down + tl.arange(0, ROWS))[:, None]
            mask = (rows < m) & pairs[None, :]
            x, y = tl.load(first + rows, mask=mask, other=0.0), tl.load(second + rows, mask=mask, other=0.0)
            xx += tl.sum(x * x, 0)
            yy += tl.sum(y * y, 0)
            xy += tl.sum(x * y, 0)
        one, two = tl.sqrt(xx), tl.sqrt(yy)
        turns = pairs & (tl.abs(xy) > tl.maximum(NEAR * one * two, LEAST * tl.maximum(one, two)))
        count = tl.sum(turns.to(tl.int32), 0)
        if count > 0:
            sine, tangent = rotation(xx, yy, xy, turns)
            sine, tangent = sine[None, :], tangent[None, :]
            for down in range(0, height, ROWS):
                rows = (down + tl.arange(0, ROWS))[:, None]
                mask = (rows < height) & turns[None, :]
                x, y = tl.load(first + rows, mask=mask, other=0.0), tl.load(second + rows, mask=mask, other=0.0)
                tl.debug_barrier()
                tl.store(first + rows, x - sine * (y + tangent * x), mask=mask)
                tl.store(second + rows, y + sine * (x - tangent * y), mask=mask)
        found += count
    return found


@triton.jit
def turn_all(x_ptr, m, n, height, LIMITS: tl.constexpr, SWEEPS: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    """Turns of all pairs, until every two columns are orthogonal."""
    sweep = tl.zeros([], tl.int32)
    found = tl.full([], 1, tl.int32)
    while (found > 0) & (sweep < SWEEPS):
        found = tl.zeros([], tl.int32)
        for turn in range(0, (n - 1) // 2 * 2 + 1):
            found += turn_pairs(x_ptr, turn, m, n, height, LIMITS[1], LIMITS[2], ROWS, PAIRS)
            tl.debug_barrier()
        sweep += 1


@triton.jit
def store_values(
    x_ptr, keys_ptr, m, n, height, added, SYMMETRIC: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr
):
    """The negative lengths of columns, or, of a symmetric matrix, v'(x - added v) / v'v, where v is below x: so what
    was added leaves errors of either sign."""
    for start in range(0, n, PAIRS):
        lanes = start + tl.arange(0, PAIRS)
        total = tl.zeros([PAIRS], x_ptr.dtype.element_ty)
        lengths = total
        columns = x_ptr + (lanes.to(tl.int64) * height)[None, :]
        for down in range(0, m, ROWS):
            rows = (down + tl.arange(0, ROWS))[:, None]
            mask = (rows < m) & (lanes < n)[None, :]
            x = tl.load(columns + rows, mask=mask, other=0.0)
            if SYMMETRIC:
                v = tl.load(columns + m + rows, mask=mask, other=0.0)
                total += tl.sum(v * (x - added * v), 0)
                lengths += tl.sum(v * v, 0)
            else:
                total += tl.sum(x * x, 0)
        value = total / tl.where(lanes < n, lengths, 1.0) if SYMMETRIC else -tl.sqrt(total)
        tl.store(keys_ptr + lanes, value, mask=lanes < n)


@triton.jit
def rank_of(key, lanes, keys_ptr, n, BLOCK: tl.constexpr):
    """How many of n keys come before these, which are those of `lanes`: smaller ones, and equal ones that stand before
    it. NaN is infinity."""
    rank = tl.zeros(lanes.shape, tl.int64)
    key = tl.where(key == key, key, float("inf"))
    for start in range(0, n, BLOCK):
        others = start + tl.arange(0, BLOCK)
        other = tl.load(keys_ptr + others, mask=others < n, other=0.0)
        other = tl.where(other == other, other, float("inf"))
        earlier = (other[None, :] == key[:, None]) & (others[None, :] < lanes[:, None])
        before = (others < n)[None, :] & ((other[None, :] < key[:, None]) | earlier)
        rank += tl.sum(before.to(tl.int64), 1)
    return rank


@triton.jit
def move_columns(x_ptr, out_ptr, lanes, rank, inside, m, height, ROWS: tl.constexpr):
    """Columns `lanes` of m rows, of a matrix whose columns have this height, as columns `rank` of another."""
    for start in range(0, m, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < m)[:, None] & inside[None, :]
        x = tl.load(x_ptr + rows[:, None] + (lanes.to(tl.int64) * height)[None, :], mask=mask, other=0.0)
        tl.store(out_ptr + rows[:, None] + (rank * m)[None, :], x, mask=mask)


@triton.jit
def jacobi_kernel(
    a_ptr,
    work_ptr,
    values_ptr,
    scaled_ptr,
    vectors_ptr,
    sizes,
    batch,
    a_stride,
    LIMITS: tl.constexpr,
    SYMMETRIC: tl.constexpr,
    SWEEPS: tl.constexpr,
    ROWS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """work: for each matrix the matrix, the rotations below it, but where singular values alone are wanted, and n
    numbers more. scaled: U S, or None. vectors: V, or None. LIMITS: LIMIT, NEAR and LEAST."""
    which = tl.program_id(0).to(tl.int64)
    m, n = plain_value(sizes[0]).to(tl.int64), plain_value(sizes[1])
    height = m + n if SYMMETRIC or vectors_ptr is not None else m
    size = height * n
    a_ptr += strided(which, batch[0], batch[1][0], False, True)
    work_ptr += which * (size + n)
    keys_ptr = work_ptr + size
    stride = plain_value(a_stride[0]), plain_value(a_stride[1])
    scale = take_matrix(a_ptr, work_ptr, m, height, size, stride, LIMITS[0], SYMMETRIC, 1024)
    tl.debug_barrier()
    added = tl.zeros_like(scale)
    if SYMMETRIC:
        added = gershgorin_shift(work_ptr, n, height, ROWS, PAIRS)
        tl.debug_barrier()
    turn_all(work_ptr, m, n, height, LIMITS, SWEEPS, ROWS, PAIRS)
    if SYMMETRIC:
        multiply_again(a_ptr, work_ptr, n, height, stride, scale, added, ROWS, PAIRS)
        tl.debug_barrier()
        turn_all(work_ptr, m, n, height, LIMITS, SWEEPS, ROWS, PAIRS)
    store_values(work_ptr, keys_ptr, m, n, height, added, SYMMETRIC, ROWS, PAIRS)
    tl.debug_barrier()
    for start in range(0, n, PAIRS):
        lanes = start + tl.arange(0, PAIRS)
        key = tl.load(keys_ptr + lanes, mask=lanes < n, other=0.0)
        rank = rank_of(key, lanes, keys_ptr, n, PAIRS)
        tl.store(values_ptr + which * n + rank, (key if SYMMETRIC else -key) / scale, mask=lanes < n)
        if scaled_ptr is not None:
            move_columns(work_ptr, scaled_ptr + which * m * n, lanes, rank, lanes < n, m, height, ROWS)
        if vectors_ptr is not None:
            move_columns(work_ptr + m, vectors_ptr + which * n * n, lanes, rank, lanes < n, n, height, ROWS)


def jacobi(a, symmetric, wanted):
    """(values, U S, V) of matrices that have no fewer rows than columns: singular values in descending order, or, of
    symmetric ones of which the lower triangle is read, eigenvalues in ascending order, and None for U S. Vectors are
    columns, and None where they are not wanted."""
    (m, n), kind = a.shape[-2:], {"dtype": a.dtype, "device": a.device}
    count = math.prod(a.shape[:-2])
    values = torch.empty((*a.shape[:-2], n), **kind)
    scaled = column_major(a.shape, a) if wanted and not symmetric else None
    vectors = column_major((*a.shape[:-2], n, n), a) if wanted else None
    height = m + n if wanted or symmetric else m
    if values.numel():
        single, small = a.dtype == torch.float32, height <= 32
        corner = a.select(-1, 0).select(-1, 0)
        jacobi_kernel[(count,)](
            a,
            torch.empty(count * (height + 1) * n, **kind),
            values,
            scaled,
            vectors,
            integers((m, n), True),
            walk([corner], list(range(corner.dim())), True),
            integers(a.stride()[-2:], True),
            LIMITS=(126.0, 3e-7, 7e-9) if single else (1000.0, 1e-15, 1.4e-17),
            SYMMETRIC=symmetric,
            SWEEPS=32,
            ROWS=32 if small else 128,
            PAIRS=16 if small else 32,
            num_warps=4 if small else 8,
        )
    return values, scaled, vectors
