"""One-sided Jacobi method: rotate pairs of matrix columns until all columns are orthogonal.

A program takes one matrix, which has at least as many rows as columns, and rotates disjoint pairs together.
The rotated columns are U S and the accumulated rotations are V, because A V = U S. For a symmetric matrix
without negative eigenvalues U equals V. Any other symmetric matrix gets this property by a diagonal shift,
which Gershgorin's theorem bounds. Sources: Golub and Van Loan, Matrix Computations, 2013, sections 7.2.1,
8.5.5 and 8.6.3; Drmac and Veselic, New fast and accurate Jacobi SVD algorithm, 2008.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import integers, plain_value, strided, walk
from blocks.substitution import column_major

# LIMIT, NEAR and LEAST. 2^LIMIT and its reciprocal are normal numbers. NEAR is a few machine epsilons (2.5 in fp32,
# 4.5 in fp64), and LEAST is one sixteenth of an epsilon.
JACOBI_LIMITS_FP32 = (126.0, 3e-7, 7e-9)
JACOBI_LIMITS_FP64 = (1000.0, 1e-15, 1.4e-17)

MOST_SWEEPS = 32  # bounds the loop if rounding errors keep a pair above its limits
LOW_COLUMNS = 32  # height up to which a smaller tile holds whole columns


@triton.jit
def partners(turn, lanes, count):
    """Return each pair's two columns in one of count - 1 turns.

    This is a round-robin schedule: `count` is even, the last column stays, and the others move in a circle,
    so each column meets every other once. The last column is the second in its pair. Lanes from count // 2 on
    are meaningless.
    """
    lanes = lanes.to(tl.int64)
    around = count - 1
    first, second = turn - lanes, turn + lanes
    first = tl.where(first < 0, first + around, first)
    second = tl.where(second < around, second, second - around)
    return first, tl.where(lanes == 0, around, second)


@triton.jit
def rotation(p, q, pq, turns):
    """Return (sine, tangent of half the angle) of the rotation that makes pq of [[p, pq], [pq, q]] zero.

    The angle is at most pi / 4, and 0 if `turns` is false. Columns x and y become x - sine (y + half x) and y
    + sine (x - half y). This form keeps lengths even if the cosine would be rounded to 1.
    """
    ratio = (q - p) / tl.where(turns, 2 * pq, 1.0)
    tangent = 1.0 / (tl.abs(ratio) + tl.sqrt(1 + ratio * ratio))
    tangent = tl.where(turns, tl.where(ratio < 0, -tangent, tangent), 0.0)
    half = tangent / (1 + tl.sqrt(1 + tangent * tangent))
    return 2 * half / (1 + half * half), half


@triton.jit
def power_near(size, KIND: tl.constexpr, LIMIT: tl.constexpr):
    """Return the power of 2 that scales a nonnegative size into [1, 2), clamped to 2^LIMIT and 2^-LIMIT."""
    exponent = -tl.floor(tl.log2(tl.where(size > 0, size, 1.0)))
    return tl.exp2(tl.minimum(tl.maximum(exponent, -LIMIT), LIMIT)).to(KIND)


@triton.jit
def place_in(i, m, height, a_stride, SYMMETRIC: tl.constexpr):
    """Return the offset in `a` for element i, counted through columns with this height.

    If SYMMETRIC, only the lower triangle is read.
    """
    row, column = i % height, i // height
    if SYMMETRIC:
        row, column = tl.maximum(row, column), tl.minimum(row, column)
    return row * a_stride[0] + column * a_stride[1]


@triton.jit
def take_matrix(
    a_ptr, x_ptr, m, height, size, a_stride, LIMIT: tl.constexpr, SYMMETRIC: tl.constexpr, BLOCK: tl.constexpr
):
    """Store the matrix times a power of 2 above the identity, and return that power.

    The work area has columns with this height and `size` elements.
    """
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
    """Shift a symmetric matrix's diagonal so that no eigenvalue is negative, and return the shift."""
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
        tl.debug_barrier()  # several threads may load the same element, and one of them stores it
        tl.store(x_ptr + rows * (height + 1), diagonal + least, mask=rows < n)
    return least


@triton.jit
def multiply_again(a_ptr, x_ptr, n, height, a_stride, scale, added, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    """Recompute the columns of a symmetric matrix as (scale a + added) v, from the vectors v below them.

    The result is free from the rotations' rounding errors.
    """
    for right in range(0, n, PAIRS):
        lanes = right + tl.arange(0, PAIRS)
        columns = x_ptr + lanes.to(tl.int64) * height
        for down in range(0, n, ROWS):
            rows = down + tl.arange(0, ROWS).to(tl.int64)
            mask = (rows < n)[:, None] & (lanes < n)[None, :]
            pointers = columns[None, :] + rows[:, None]
            total = added * tl.load(pointers + n, mask=mask, other=0.0)
            for k in range(0, n):
                lower = tl.maximum(rows, k) * a_stride[0] + tl.minimum(rows, k) * a_stride[1]
                a = tl.load(a_ptr + lower, mask=rows < n, other=0.0) * scale
                v = tl.load(columns + n + k, mask=lanes < n, other=0.0)
                total += a[:, None] * v[None, :]
            tl.store(pointers, total, mask=mask)


@triton.jit
def turn_pairs(
    x_ptr, turn, m, n, height, NEAR: tl.constexpr, LEAST: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr
):
    """Rotate the pairs in one turn that are not orthogonal, and return their number.

    A pair counts if the product of its first m elements exceeds NEAR times both lengths, and LEAST times the
    longer one (the matrix is scaled to about 1).
    """
    rotations = tl.zeros([], tl.int32)
    half = (n + 1) // 2
    # The pairs of a turn have no column in common, so their order does not matter.
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
        x_length, y_length = tl.sqrt(xx), tl.sqrt(yy)
        turns = pairs & (tl.abs(xy) > tl.maximum(NEAR * x_length * y_length, LEAST * tl.maximum(x_length, y_length)))
        count = tl.sum(turns.to(tl.int32), 0)
        if count > 0:
            sine, tangent = rotation(xx, yy, xy, turns)
            sine, tangent = sine[None, :], tangent[None, :]
            for down in range(0, height, ROWS):
                rows = (down + tl.arange(0, ROWS))[:, None]
                mask = (rows < height) & turns[None, :]
                x, y = tl.load(first + rows, mask=mask, other=0.0), tl.load(second + rows, mask=mask, other=0.0)
                tl.debug_barrier()  # threads with a copy of an element must load it before one stores it
                tl.store(first + rows, x - sine * (y + tangent * x), mask=mask)
                tl.store(second + rows, y + sine * (x - tangent * y), mask=mask)
        rotations += count
    return rotations


@triton.jit
def turn_all(x_ptr, m, n, height, LIMITS: tl.constexpr, SWEEPS: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    """Repeat sweeps over all pairs until all columns are orthogonal, at most SWEEPS times."""
    sweep = tl.zeros([], tl.int32)
    rotations = tl.full([], 1, tl.int32)
    while (rotations > 0) & (sweep < SWEEPS):
        rotations = tl.zeros([], tl.int32)
        for turn in range(0, (n - 1) // 2 * 2 + 1):
            rotations += turn_pairs(x_ptr, turn, m, n, height, LIMITS[1], LIMITS[2], ROWS, PAIRS)
            tl.debug_barrier()  # the next turn reads columns that other threads have stored
        sweep += 1


@triton.jit
def store_values(
    x_ptr, keys_ptr, m, n, height, added, SYMMETRIC: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr
):
    """Store the negative lengths of the columns, or the eigenvalues of a symmetric matrix.

    An eigenvalue is v'(x - added v) / v'v, with v below x, so the shift leaves errors of either sign. With
    negative lengths, ascending keys are descending singular values.
    """
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
    """Return the rank of each key: the number of smaller keys plus the number of equal keys before it.

    `key` has the keys of `lanes`, out of n. NaN ranks as infinity.
    """
    rank = tl.zeros(lanes.shape, tl.int64)
    key = tl.where(key == key, key, float("inf"))
    for start in range(0, n, BLOCK):
        other_lanes = start + tl.arange(0, BLOCK)
        other_key = tl.load(keys_ptr + other_lanes, mask=other_lanes < n, other=0.0)
        other_key = tl.where(other_key == other_key, other_key, float("inf"))
        earlier = (other_key[None, :] == key[:, None]) & (other_lanes[None, :] < lanes[:, None])
        before = (other_lanes < n)[None, :] & ((other_key[None, :] < key[:, None]) | earlier)
        rank += tl.sum(before.to(tl.int64), 1)
    return rank


@triton.jit
def move_columns(x_ptr, out_ptr, lanes, rank, inside, m, height, ROWS: tl.constexpr):
    """Copy the first m rows in columns `lanes` to columns `rank` in another matrix.

    The source columns have this height, and the target columns have m elements.
    """
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
    """Decompose one matrix per program.

    Args:
        a_ptr: [batch, m, n], read.
        work_ptr: [batch, (height + 1) * n], read and written: for each matrix, n columns with height m + n,
            which hold its columns above the rotations, then n keys. A general matrix without vectors has no
            rotations, so its height is m.
        values_ptr: [batch, n], contiguous, written in sorted order.
        scaled_ptr: U S, [batch, m, n] column-major, written, or None.
        vectors_ptr: V, [batch, n, n] column-major, written, or None.
        sizes: m and n, encoded by `plain`.
        batch: `walk` over the batch dimensions of a.
        a_stride: Strides of a between rows and between columns, encoded by `plain`.
        LIMITS: LIMIT of `power_near`, then NEAR and LEAST of `turn_pairs`.
        SYMMETRIC: True to read the lower triangle and compute eigenvalues.
        SWEEPS: Most sweeps over all pairs.
        ROWS: Rows per tile.
        PAIRS: Columns, or pairs of columns, per tile.
    """
    matrix = tl.program_id(0).to(tl.int64)
    m, n = plain_value(sizes[0]).to(tl.int64), plain_value(sizes[1])
    height = m + n if SYMMETRIC or vectors_ptr is not None else m
    size = height * n
    a_ptr += strided(matrix, batch[0], batch[1][0], False, True)
    work_ptr += matrix * (size + n)
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
    # Ranks are a permutation of the columns, so each result column is written exactly once.
    for start in range(0, n, PAIRS):
        lanes = start + tl.arange(0, PAIRS)
        key = tl.load(keys_ptr + lanes, mask=lanes < n, other=0.0)
        rank = rank_of(key, lanes, keys_ptr, n, PAIRS)
        tl.store(values_ptr + matrix * n + rank, (key if SYMMETRIC else -key) / scale, mask=lanes < n)
        if scaled_ptr is not None:
            move_columns(work_ptr, scaled_ptr + matrix * m * n, lanes, rank, lanes < n, m, height, ROWS)
        if vectors_ptr is not None:
            move_columns(work_ptr + m, vectors_ptr + matrix * n * n, lanes, rank, lanes < n, n, height, ROWS)


def jacobi(a, symmetric, wanted):
    """Return (values, U S, V) of matrices that have at least as many rows as columns.

    Args:
        a: [..., m, n] tensor, fp32 or fp64.
        symmetric: If True, read the lower triangle only and compute eigenvalues.
        wanted: If True, compute the vectors.

    Returns:
        values: [..., n] singular values in descending order, or eigenvalues in ascending order.
        U S: [..., m, n] in columns; None if `symmetric` or if vectors are not wanted.
        V: [..., n, n] in columns; None if vectors are not wanted.
    """
    (m, n), kind = a.shape[-2:], {"dtype": a.dtype, "device": a.device}
    count = math.prod(a.shape[:-2])
    values = torch.empty((*a.shape[:-2], n), **kind)
    scaled = column_major(a.shape, a) if wanted and not symmetric else None
    vectors = column_major((*a.shape[:-2], n, n), a) if wanted else None
    height = m + n if wanted or symmetric else m
    if values.numel():
        single, small = a.dtype == torch.float32, height <= LOW_COLUMNS
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
            LIMITS=JACOBI_LIMITS_FP32 if single else JACOBI_LIMITS_FP64,
            SYMMETRIC=symmetric,
            SWEEPS=MOST_SWEEPS,
            ROWS=32 if small else 128,
            PAIRS=16 if small else 32,
            num_warps=4 if small else 8,
        )
    return values, scaled, vectors
