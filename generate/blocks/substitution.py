"""Forward and back substitution for triangular systems of linear equations.

A program takes BLOCK_N right-hand-side columns for one matrix in the batch, and BLOCK_M rows at a time. It
subtracts the products with all rows that are solved already, then solves the block itself in registers.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer_values, integers, plain, plain_value, strided, walk


@triton.jit
def solved_block(x, t_ptr, left, t_stride, UNIT: tl.constexpr):
    """Solve rows x with the lower triangle at t_ptr; only the first `left` rows are valid."""
    lanes = tl.arange(0, x.shape[0])
    for k in range(0, tl.minimum(left, x.shape[0])):
        row = tl.sum(tl.where((lanes == k)[:, None], x, 0.0), 0)  # a masked sum, because tiles have no indexing
        if not UNIT:
            row = row / tl.load(t_ptr + k * (t_stride[0] + t_stride[1]))
        below = (lanes > k) & (lanes < left)
        t = tl.load(t_ptr + lanes * t_stride[0] + k * t_stride[1], mask=below, other=0.0)
        x = tl.where(below[:, None], x - t[:, None] * row[None, :], x)
        x = tl.where((lanes == k)[:, None], row[None, :], x)
    return x


@triton.jit
def substitution(t_ptr, b_ptr, out_ptr, n, cols, col_mask, strides, UNIT: tl.constexpr, BLOCK_M: tl.constexpr):
    """Solve t @ out = b for columns in out, with t a lower triangle with n rows.

    b_ptr None means the identity. `strides` are those for t, b and out; b may be out.
    """
    t_stride, b_stride, out_stride = strides
    lanes = tl.arange(0, BLOCK_M).to(tl.int64)
    for start in range(0, n, BLOCK_M):
        rows = start + lanes
        mask = (rows < n)[:, None] & col_mask[None, :]
        if b_ptr is None:
            x = (rows[:, None] == cols[None, :]).to(out_ptr.dtype.element_ty)
        else:
            x = tl.load(b_ptr + rows[:, None] * b_stride[0] + cols[None, :] * b_stride[1], mask=mask, other=0.0)
        for k in range(0, start):  # rows of earlier blocks are solved already
            t = tl.load(t_ptr + rows * t_stride[0] + k * t_stride[1], mask=rows < n, other=0.0)
            row = tl.load(out_ptr + k * out_stride[0] + cols * out_stride[1], mask=col_mask, other=0.0)
            x -= t[:, None] * row[None, :]
        first = tl.full([], start, tl.int64)
        x = solved_block(x, t_ptr + first * (t_stride[0] + t_stride[1]), n - start, t_stride, UNIT)
        tl.store(out_ptr + rows[:, None] * out_stride[0] + cols[None, :] * out_stride[1], x, mask=mask)
        tl.debug_barrier()  # later blocks read these rows from other threads


@triton.jit
def reversed_rows(x_ptr, n, step, strides):
    """Return a pointer to the last row and the strides from there.

    With reversed rows an upper triangle becomes a lower one. Rows are `step` apart.
    """
    return x_ptr + (n - 1).to(tl.int64) * step, strides


@triton.jit
def triangular_kernel(
    t_ptr,
    b_ptr,
    out_ptr,
    n,
    m,
    batch,
    strides,
    UPPER: tl.constexpr,
    UNIT: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Solve triangular systems, BLOCK_N right-hand-side columns for one matrix per program.

    Args:
        t_ptr: [batch, n, n], triangular matrices, read.
        b_ptr: [batch, n, m], right-hand sides, read, or None for the identity.
        out_ptr: [batch, n, m], solutions, written; may be b_ptr.
        n: rows per matrix, encoded by `plain`.
        m: right-hand-side columns, encoded by `plain`.
        batch: walk over the batch dimensions, in the order t, b, out.
        strides: (row stride, column stride) in the order t, b, out, encoded by `integers`.
        UPPER: t is an upper triangle, else a lower one.
        UNIT: the diagonal counts as ones and is not read.
        PLAIN: the other integers are encoded by `plain`.
        BLOCK_M: rows that are solved together in registers.
        BLOCK_N: right-hand-side columns per program.
    """
    n, m = plain_value(n), plain_value(m)
    across = tl.cdiv(m, BLOCK_N)
    matrix = (tl.program_id(0) // across).to(tl.int64)
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    t_ptr += strided(matrix, batch[0], batch[1][0], False, PLAIN)
    if b_ptr is not None:
        b_ptr += strided(matrix, batch[0], batch[1][1], False, PLAIN)
    out_ptr += strided(matrix, batch[0], batch[1][2], False, PLAIN)
    t_stride, b_stride = integer_values(strides[0], PLAIN), integer_values(strides[1], PLAIN)
    out_stride = integer_values(strides[2], PLAIN)
    if UPPER:
        t_ptr, t_stride = reversed_rows(t_ptr, n, t_stride[0] + t_stride[1], (-t_stride[0], -t_stride[1]))
        b_ptr, b_stride = reversed_rows(b_ptr, n, b_stride[0], (-b_stride[0], b_stride[1]))
        out_ptr, out_stride = reversed_rows(out_ptr, n, out_stride[0], (-out_stride[0], out_stride[1]))
    substitution(t_ptr, b_ptr, out_ptr, n, cols, cols < m, (t_stride, b_stride, out_stride), UNIT, BLOCK_M)


def solve_triangles(t, b, out, upper, unit):
    """Solve t @ out = b with triangular t, and return `out`; b None means the identity, for lower triangles only.

    All tensors have the same batch dimensions, and out may be b.
    """
    if not out.numel():
        return out
    n, m = out.shape[-2:]
    like = out if b is None else b
    batch = math.prod(out.shape[:-2])
    PLAIN = batch * n * max(n, m) < SMALL_TENSOR
    BLOCK_N = min(max(triton.next_power_of_2(m), 16), 32)
    triangular_kernel[(batch * triton.cdiv(m, BLOCK_N),)](
        t,
        b,
        out,
        plain(n),
        plain(m),
        walk([x.select(-1, 0).select(-1, 0) for x in (t, like, out)], list(range(out.dim() - 2)), PLAIN),
        tuple([integers(x.stride()[-2:], PLAIN) for x in (t, like, out)]),
        UPPER=upper,
        UNIT=unit,
        PLAIN=PLAIN,
        BLOCK_M=32,
        BLOCK_N=BLOCK_N,
        num_warps=2,
    )
    return out


def column_major(shape, like, dtype=None):
    """Return new matrices with this shape and contiguous columns, as LAPACK leaves them."""
    m, n = shape[-2:]
    return torch.empty((*shape[:-2], n, m), dtype=dtype or like.dtype, device=like.device).mT


def square_rows(x, name, halves=False, complex_too=False):
    """Return the number of rows in square matrices.

    Args:
        x: Tensor to check.
        name: Operator name for error messages.
        halves: Also accept float16 and bfloat16.
        complex_too: Also accept complex dtypes.

    Raises:
        RuntimeError: If x is not square, or if its dtype is none of float32, float64 and the accepted others.
    """
    if x.dim() < 2 or x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"{name}: expected square matrices, got {tuple(x.shape)}")
    is_accepted = (halves and x.is_floating_point()) or (complex_too and x.is_complex())
    if x.dtype not in (torch.float32, torch.float64) and not is_accepted:
        raise RuntimeError(f"{name}: matrices must be float32 or float64, got {x.dtype}")
    return x.shape[-1]


def one_batch(a, b):
    """Expand a and b to their common batch dimensions."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand((*batch, *a.shape[-2:])), b.expand((*batch, *b.shape[-2:]))
