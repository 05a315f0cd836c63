"""Compute solution weights and squared residuals for minimum-norm least-squares solvers."""

import math

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.offsets import integer_values, integers, strided, walk


@triton.jit
def one_if_positive(x):
    return (x > 0).to(tl.int64)


@triton.jit
def scaled_by(x, weight, squares):
    """Return weight * x / sqrt(squares); `squares` of 0 counts as 1.

    x is a product with a vector whose squares sum to `squares`, so the division normalizes that vector.
    """
    return divide(x, root(tl.where(squares > 0, squares, 1.0))) * weight


@triton.jit
def residual_kernel(a_ptr, x_ptr, b_ptr, out_ptr, sizes, batch, strides, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Compute the sum of squares of each column of a x - b, COLS columns per program.

    Args:
        a_ptr: [batch, m, n], read.
        x_ptr: [batch, n, count], read.
        b_ptr: [batch, m, count], read.
        out_ptr: [batch, count], contiguous, written.
        sizes: m, n and count, encoded by `plain`.
        batch: `walk` over the batch dimensions of a, x and b.
        strides: Strides of a, x and b between rows and between columns, encoded by `plain`.
        ROWS: Rows per step.
        COLS: Columns per program.
    """
    m, n, count = integer_values(sizes, True)
    across = tl.cdiv(count, COLS)
    matrix = (tl.program_id(0) // across).to(tl.int64)
    cols = (tl.program_id(0) % across).to(tl.int64) * COLS + tl.arange(0, COLS)
    a_ptr += strided(matrix, batch[0], batch[1][0], False, True)
    x_ptr += strided(matrix, batch[0], batch[1][1], False, True)
    b_ptr += strided(matrix, batch[0], batch[1][2], False, True)
    a_stride, x_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    b_stride = integer_values(strides[2], True)
    squares = tl.zeros([COLS], out_ptr.dtype.element_ty)
    for start in range(0, m, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows < m)[:, None] & (cols < count)[None, :]
        pointers = b_ptr + rows[:, None] * b_stride[0] + cols[None, :] * b_stride[1]
        residual = tl.load(pointers, mask=mask, other=0.0)
        for i in range(0, n):
            k = tl.full([], i, tl.int64)
            a = tl.load(a_ptr + rows * a_stride[0] + k * a_stride[1], mask=rows < m, other=0.0)
            x = tl.load(x_ptr + k * x_stride[0] + cols * x_stride[1], mask=cols < count, other=0.0)
            residual -= a[:, None] * x[None, :]
        squares += tl.sum(residual * residual, 0)
    tl.store(out_ptr + matrix * count + cols, squares, mask=cols < count)


def residual_squares(a, x, b, out):
    """Fill the contiguous `out` with the sum of squares in each column of a x - b, and return it.

    All tensors have the same batch dimensions.
    """
    if not out.numel():
        return out
    (m, n), count = a.shape[-2:], b.shape[-1]
    rows, cols = [min(max(triton.next_power_of_2(size), 16), 32) for size in (m, count)]
    dims = list(range(b.dim() - 2))
    corners = [t.select(-1, 0).select(-1, 0) if t.numel() else b.select(-1, 0).select(-1, 0) for t in (a, x, b)]
    residual_kernel[(math.prod(b.shape[:-2]) * triton.cdiv(count, cols),)](
        a,
        x,
        b,
        out,
        integers((m, n, count), True),
        walk(corners, dims, True),
        tuple([integers(t.stride()[-2:], True) for t in (a, x, b)]),
        ROWS=rows,
        COLS=cols,
        num_warps=4,
    )
    return out
