"""Householder reflections in LAPACK's format: H = I - tau v v'.

v is 1 in row k and 0 above it; the rest is stored below the diagonal in column k. A program instance takes one
matrix to compute reflections, or BLOCK columns to apply them.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer_values, integers, plain, plain_value, strided, walk
from blocks.substitution import column_major


@triton.jit
def apply_reflection(x_ptr, v_ptr, tau, k, m, cols, col_mask, x_stride, v_stride, ROWS: tl.constexpr):
    """Subtract tau v (v' x) from columns with m rows, in pointers; v_ptr points to column k."""
    total = tl.zeros(cols.shape, x_ptr.dtype.element_ty)
    for start in range(k, m, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        v = tl.load(v_ptr + rows * v_stride, mask=(rows > k) & (rows < m), other=0.0)
        v = tl.where(rows == k, 1.0, v).to(total.dtype)
        pointers = x_ptr + rows[:, None] * x_stride[0] + cols[None, :] * x_stride[1]
        x = tl.load(pointers, mask=(rows < m)[:, None] & col_mask[None, :], other=0.0)
        total += tl.sum(v[:, None] * x, 0)
    total *= tau
    for start in range(k, m, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        v = tl.load(v_ptr + rows * v_stride, mask=(rows > k) & (rows < m), other=0.0)
        v = tl.where(rows == k, 1.0, v).to(total.dtype)
        pointers = x_ptr + rows[:, None] * x_stride[0] + cols[None, :] * x_stride[1]
        mask = (rows < m)[:, None] & col_mask[None, :]
        x = tl.load(pointers, mask=mask, other=0.0)
        tl.store(pointers, x - v[:, None] * total[None, :], mask=mask)


@triton.jit
def reflection(x_ptr, k, m, LONG: tl.constexpr):
    """Return tau for the reflection that zeroes a contiguous column below row k, and store v there.

    The column is scaled by its largest element, so that its norm does not overflow.
    """
    alpha = tl.load(x_ptr + k)
    peak = tl.zeros_like(alpha)
    for start in range(k + 1, m, LONG):
        rows = start + tl.arange(0, LONG)
        peak = tl.maximum(peak, tl.max(tl.abs(tl.load(x_ptr + rows, mask=rows < m, other=0.0)), 0))
    unit = tl.maximum(peak, tl.abs(alpha))
    unit = tl.where(unit > 0, unit, 1.0)
    below = tl.zeros_like(alpha)
    for start in range(k + 1, m, LONG):
        rows = start + tl.arange(0, LONG)
        x = tl.load(x_ptr + rows, mask=rows < m, other=0.0) / unit
        below += tl.sum(x * x, 0)
    norm = unit * tl.sqrt(below + (alpha / unit) * (alpha / unit))
    # A maximum ignores NaN, so the peak may be 0 beside a NaN; the sum of squares is NaN then.
    is_zero = (peak == 0) & (below == below)
    beta = tl.where(is_zero, alpha, tl.where(alpha >= 0, -norm, norm))
    divisor = tl.where(is_zero, 1.0, alpha - beta)
    for start in range(k, m, LONG):
        rows = start + tl.arange(0, LONG)
        x = tl.load(x_ptr + rows, mask=rows < m, other=0.0)
        tl.store(x_ptr + rows, tl.where(rows == k, beta, x / divisor), mask=rows < m)
    return tl.where(is_zero, 0.0, (beta - alpha) / tl.where(is_zero, 1.0, beta)).to(alpha.dtype)


@triton.jit
def reflectors_kernel(x_ptr, tau_ptr, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, LONG: tl.constexpr):
    """Reduce one matrix to R and its reflections, in place.

    Args:
        x_ptr: [batch, m, n] column-major, read and written.
        tau_ptr: [batch, min(m, n)], contiguous, written.
        m: Rows of a matrix, encoded by `plain`.
        n: Columns of a matrix, encoded by `plain`.
        ROWS: Rows per step when a reflection is applied.
        BLOCK: Columns per step when a reflection is applied.
        LONG: Rows per step in a single column.
    """
    matrix = tl.program_id(0).to(tl.int64)
    m, n = plain_value(m), plain_value(n)
    stride = m.to(tl.int64)
    count = tl.minimum(m, n)
    x_ptr += matrix * stride * n
    for k in range(0, count):
        tau = reflection(x_ptr + k * stride, k, m, LONG)
        tl.store(tau_ptr + matrix * count + k, tau)
        tl.debug_barrier()  # all threads read the column v that `reflection` has stored
        for right in range(k + 1, n, BLOCK):
            cols = right + tl.arange(0, BLOCK).to(tl.int64)
            apply_reflection(x_ptr, x_ptr + k * stride, tau, k, m, cols, cols < n, (1, stride), 1, ROWS)
        tl.debug_barrier()


def reflectors(A, name):
    """Return (reflections below the diagonal and R above it, tau).

    Raises RuntimeError unless A holds fp32 or fp64 matrices.
    """
    if A.dim() < 2 or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"{name}: expected float32 or float64 matrices, got {tuple(A.shape)} {A.dtype}")
    m, n = A.shape[-2:]
    out = copied(A, column_major(A.shape, A))
    tau = torch.empty((*A.shape[:-2], min(m, n)), dtype=A.dtype, device=A.device)
    if tau.numel():
        ROWS, LONG = row_blocks(m)
        reflectors_kernel[(math.prod(A.shape[:-2]),)](
            out, tau, plain(m), plain(n), ROWS=ROWS, BLOCK=32, LONG=LONG, num_warps=4
        )
    return out, tau


def row_blocks(m):
    """Return the rows per tile, and the rows per step in a single column, for m rows."""
    rows = max(triton.next_power_of_2(m), 16)
    return min(rows, 64), min(max(rows, 128), 1024)


@triton.jit
def reflections_kernel(
    v_ptr,
    tau_ptr,
    b_ptr,
    out_ptr,
    sizes,
    batch,
    strides,
    FIRST: tl.constexpr,
    PLAIN: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Apply `count` reflections to columns of b, or of the identity.

    FIRST begins with the first reflection, otherwise the last one comes first.

    Args:
        v_ptr: Reflections below the diagonal, [batch, m, count or more], read.
        tau_ptr: [batch, count], read.
        b_ptr: [batch, m, n] or None for the identity, read.
        out_ptr: [batch, m, n], written, then read and written for each reflection.
        sizes: m, n and count, encoded by `plain`.
        batch: `walk` over the batch dimensions of v, tau, b and out.
        strides: Strides of v (rows, columns) and tau, of b, and of out, encoded by `plain`.
        FIRST: True to begin with the first reflection, False with the last one.
        PLAIN: True if the integers in `batch` are encoded by `plain`.
        ROWS: Rows per step.
        BLOCK: Columns per program instance.
    """
    m, n, count = integer_values(sizes, True)
    across = tl.cdiv(n, BLOCK)
    matrix = (tl.program_id(0) // across).to(tl.int64)
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v_ptr += strided(matrix, batch[0], batch[1][0], False, PLAIN)
    tau_ptr += strided(matrix, batch[0], batch[1][1], False, PLAIN)
    out_ptr += strided(matrix, batch[0], batch[1][3], False, PLAIN)
    v_stride, b_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    out_stride = integer_values(strides[2], True)
    for start in range(0, m, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        if b_ptr is None:
            x = (rows[:, None] == cols[None, :]).to(out_ptr.dtype.element_ty)
        else:
            read = strided(matrix, batch[0], batch[1][2], False, PLAIN) + rows[:, None] * b_stride[0]
            x = tl.load(b_ptr + read + cols[None, :] * b_stride[1], mask=mask, other=0.0)
        tl.store(out_ptr + rows[:, None] * out_stride[0] + cols[None, :] * out_stride[1], x, mask=mask)
    tl.debug_barrier()
    for i in range(0, count):
        k = tl.full([], i if FIRST else count - 1 - i, tl.int64)
        tau = tl.load(tau_ptr + k * v_stride[2])
        apply_reflection(out_ptr, v_ptr + k * v_stride[1], tau, k, m, cols, cols < n, out_stride, v_stride[0], ROWS)
        tl.debug_barrier()  # the next reflection reads what other threads have stored


def reflected(v, tau, b, out, first):
    """Fill `out` with the product of the reflections times b, or times the identity if b is None, and return it.

    With `first`, the first reflection is applied first, which gives the product's transpose. All tensors have
    the same batch shape.
    """
    if not out.numel():
        return out
    (m, n), count = out.shape[-2:], tau.shape[-1]
    like = out if b is None else b
    corners = [x.select(-1, 0).select(-1, 0) for x in (out, out, like, out)]
    if count:
        corners = [v.select(-1, 0).select(-1, 0), tau.select(-1, 0), *corners[2:]]
    batch = math.prod(out.shape[:-2])
    PLAIN = batch * m * max(m, n) < SMALL_TENSOR
    strides = (*v.stride()[-2:], tau.stride(-1)), like.stride()[-2:], out.stride()[-2:]
    BLOCK = 32
    reflections_kernel[(batch * triton.cdiv(n, BLOCK),)](
        v,
        tau,
        b,
        out,
        integers((m, n, count), True),
        walk(corners, list(range(out.dim() - 2)), PLAIN),
        tuple([integers(s, True) for s in strides]),
        FIRST=first,
        PLAIN=PLAIN,
        ROWS=row_blocks(m)[0],
        BLOCK=BLOCK,
        num_warps=4,
    )
    return out
