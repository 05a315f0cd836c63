"""aten::linalg_matrix_exp(Tensor self) -> Tensor

Scaling and squaring, one matrix per program instance. The matrix is divided by 2^k, so that its 1-norm (the
largest column sum of absolute values) is at most 1. A Taylor polynomial computes the exponential, and k
squarings undo the division. The degree is 12 in fp32 and 18 in fp64.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import integers, plain, plain_value, strided, walk
from blocks.substitution import square_rows
from blocks.types import convert

OVERLOADS = ("aten::linalg_matrix_exp",)
DTYPES = ("bfloat16", "float16", "float32", "float64")

# Degrees of the Taylor polynomial. With a norm of at most 1, the first omitted term is below the rounding error:
DEGREE_FP32 = 12  # 1 / 13! = 1.6e-10 < 2^-24 = 6.0e-8
DEGREE_FP64 = 18  # 1 / 19! = 8.2e-18 < 2^-53 = 1.1e-16


@triton.jit
def store_product(a_ptr, b_ptr, out_ptr, n, divisor, IDENTITY: tl.constexpr, BLOCK: tl.constexpr):
    """Store out = a @ b / divisor, plus the identity if IDENTITY.

    All three are contiguous [n, n] matrices, and `out` must not alias a or b.
    """
    for down in range(0, n, BLOCK):
        rows = down + tl.arange(0, BLOCK).to(tl.int64)
        for right in range(0, n, BLOCK):
            cols = right + tl.arange(0, BLOCK).to(tl.int64)
            acc = tl.zeros([BLOCK, BLOCK], out_ptr.dtype.element_ty)
            for k in range(0, n):  # outer products, because tl.dot takes no fp64
                a = tl.load(a_ptr + rows * n + k, mask=rows < n, other=0.0)
                b = tl.load(b_ptr + tl.full([], k, tl.int64) * n + cols, mask=cols < n, other=0.0)
                acc += a[:, None] * b[None, :]
            acc = acc / divisor
            if IDENTITY:
                acc += (rows[:, None] == cols[None, :]).to(acc.dtype)
            mask = (rows < n)[:, None] & (cols < n)[None, :]
            tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)


@triton.jit
def column_norm(a_ptr, n, a_stride, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Return the 1-norm: the largest column sum of absolute values."""
    norm = tl.zeros([], KIND)
    for right in range(0, n, BLOCK):
        cols = right + tl.arange(0, BLOCK).to(tl.int64)
        total = tl.zeros([BLOCK], KIND)
        for k in range(0, n):
            offset = tl.full([], k, tl.int64) * a_stride[0] + cols * a_stride[1]
            total += tl.abs(tl.load(a_ptr + offset, mask=cols < n, other=0.0).to(KIND))
        norm = tl.maximum(norm, tl.max(total, 0))
    return norm


@triton.jit
def matrix_exp_kernel(
    a_ptr,
    work_ptr,
    out_ptr,
    n,
    batch,
    a_stride,
    DEGREE: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the exponential for one matrix.

    The polynomial is evaluated by Horner's rule: P = X @ P / k + I for k from DEGREE - 1 down to 1. Barriers
    separate the products, because each reads elements that other threads stored.

    Args:
        a_ptr: [batch, n, n], read.
        work_ptr: [batch, 3, n, n], scratch: the scaled matrix, and two buffers that alternate as input and
            output.
        out_ptr: [batch, n, n], contiguous, written.
        n: Number of rows, encoded by `plain`.
        batch: (shape, strides) of a's batch dimensions, from `walk`.
        a_stride: Strides of a's rows and columns, encoded by `plain`.
        DEGREE: Degree of the Taylor polynomial.
        PLAIN: True, because the integers in `batch` are encoded by `plain`.
        BLOCK: Rows and columns per tile.
    """
    matrix = tl.program_id(0).to(tl.int64)
    n = plain_value(n)
    size = n.to(tl.int64) * n
    a_stride = plain_value(a_stride[0]), plain_value(a_stride[1])
    a_ptr += strided(matrix, batch[0], batch[1][0], False, PLAIN)
    work_ptr += matrix * 3 * size
    KIND: tl.constexpr = work_ptr.dtype.element_ty
    one = tl.full([], 1, KIND)
    norm = column_norm(a_ptr, n, a_stride, KIND, BLOCK)
    finite = (norm > 1) & (norm < float("inf"))
    halvings = tl.where(finite, tl.ceil(tl.log2(tl.where(finite, norm, 1.0))), 0.0)
    scale = tl.exp2(-halvings).to(one.dtype)
    current, spare = size, 2 * size
    for down in range(0, n, BLOCK):
        rows = down + tl.arange(0, BLOCK).to(tl.int64)
        for right in range(0, n, BLOCK):
            cols = right + tl.arange(0, BLOCK).to(tl.int64)
            mask = (rows < n)[:, None] & (cols < n)[None, :]
            pointers = a_ptr + rows[:, None] * a_stride[0] + cols[None, :] * a_stride[1]
            x = tl.load(pointers, mask=mask, other=0.0).to(KIND) * scale
            pointers = work_ptr + rows[:, None] * n + cols[None, :]
            tl.store(pointers, x, mask=mask)
            tl.store(pointers + current, x / DEGREE + (rows[:, None] == cols[None, :]).to(one.dtype), mask=mask)
    tl.debug_barrier()
    for k in range(1, DEGREE):
        store_product(work_ptr, work_ptr + current, work_ptr + spare, n, one * (DEGREE - k), True, BLOCK)
        tl.debug_barrier()
        current, spare = spare, current
    for _ in range(0, halvings.to(tl.int32)):
        store_product(work_ptr + current, work_ptr + current, work_ptr + spare, n, one, False, BLOCK)
        tl.debug_barrier()
        current, spare = spare, current
    for start in range(0, size, 1024):
        i = start + tl.arange(0, 1024).to(tl.int64)
        x = tl.load(work_ptr + current + i, mask=i < size)
        tl.store(out_ptr + matrix * size + i, convert(x, out_ptr.dtype.element_ty), mask=i < size)


def wrapper(self):
    work_dtype = torch.float32 if self.dtype in (torch.float16, torch.bfloat16) else self.dtype
    n = square_rows(self, "linalg.matrix_exp", True)
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    if not out.numel():
        return out
    count = math.prod(self.shape[:-2])
    work = torch.empty((count, 3, n, n), dtype=work_dtype, device=self.device)
    corner = self.select(-1, 0).select(-1, 0)
    matrix_exp_kernel[(count,)](
        self,
        work,
        out,
        plain(n),
        walk([corner], list(range(corner.dim())), True),
        integers(self.stride()[-2:], True),
        DEGREE=DEGREE_FP32 if work_dtype == torch.float32 else DEGREE_FP64,
        PLAIN=True,
        BLOCK=16 if n <= 16 else 32,
        num_warps=4,
    )
    return out
