"""Determinants of matrices, from their LU factors, with one program instance per matrix."""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import sign_of
from blocks.combination import product_of
from blocks.factorization import lu_factors
from blocks.offsets import plain, plain_value
from blocks.substitution import square_rows


@triton.jit
def determinant_kernel(factors_ptr, pivots_ptr, out_ptr, log_ptr, n, BLOCK: tl.constexpr):
    """Compute the product of the diagonal, or its sign and the logarithm of its magnitude.

    The sign changes with an odd number of row exchanges.

    Args:
        factors_ptr: [batch, n, n] LU factors, read.
        pivots_ptr: [batch, n] 1-based pivots, read.
        out_ptr: [batch] determinant, or its sign if there are logarithms, written.
        log_ptr: [batch] logarithm, written, or None.
        n: Rows, encoded by `plain`.
        BLOCK: Diagonal elements per step.
    """
    matrix = tl.program_id(0).to(tl.int64)
    n = plain_value(n)
    step = n.to(tl.int64) + 1
    factors_ptr += matrix * n * n
    pivots_ptr += matrix * n
    product = tl.full([BLOCK], 1, factors_ptr.dtype.element_ty)
    logarithm = tl.zeros([BLOCK], factors_ptr.dtype.element_ty)
    exchanges = tl.zeros([BLOCK], tl.int32)
    for start in range(0, n, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(factors_ptr + k * step, mask=k < n, other=1.0)  # 1 changes neither a product nor a logarithm
        row = tl.load(pivots_ptr + k, mask=k < n, other=0)
        exchanges += ((row != k + 1) & (k < n)).to(tl.int32)
        if log_ptr is None:
            product *= x
        else:
            product *= sign_of(x)
            logarithm += tl.log(tl.abs(x))
    total = tl.reduce(product, 0, product_of)
    odd = tl.sum(exchanges, 0) % 2 == 1
    tl.store(out_ptr + matrix, tl.where(odd, -total, total))
    if log_ptr is not None:
        tl.store(log_ptr + matrix, tl.sum(logarithm, 0))


def determinants(A, name, logarithms):
    """Return (determinants, LU, pivots), or (signs, logarithms of magnitudes, LU, pivots).

    Contiguous matrices are transposed before they are factored, as in ATen; the determinant is the same.
    """
    n = square_rows(A, name)
    factors, pivots, _ = lu_factors(A.mT if A.is_contiguous() else A, name)
    outs = [torch.empty(A.shape[:-2], dtype=A.dtype, device=A.device) for _ in range(2 if logarithms else 1)]
    if outs[0].numel():
        BLOCK = min(max(triton.next_power_of_2(n), 16), 1024)
        log = outs[1] if logarithms else None
        determinant_kernel[(outs[0].numel(),)](factors, pivots, outs[0], log, plain(n), BLOCK=BLOCK, num_warps=1)
    return *outs, factors, pivots
