"""aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor

With left=False, the transposed system is solved, and the result is contiguous. With left=True, the result has
contiguous columns.
"""

import torch
from blocks.factorization import solve_factored
from blocks.substitution import column_major, one_batch, square_rows
from blocks.types import identical_dtypes

OVERLOADS = ("aten::linalg_lu_solve",)
DTYPES = ("float32", "float64")


def wrapper(LU, pivots, B, *, left=True, adjoint=False):
    n = square_rows(LU, "linalg.lu_solve")
    identical_dtypes(LU, B)
    if pivots.dtype != torch.int32 or pivots.shape != LU.shape[:-1]:
        raise RuntimeError(f"linalg.lu_solve: pivots {pivots.dtype} {tuple(pivots.shape)} do not fit {tuple(LU.shape)}")
    if B.dim() < 2 or B.shape[-2 if left else -1] != n:
        raise RuntimeError(f"linalg.lu_solve: right-hand side {tuple(B.shape)} does not fit {tuple(LU.shape)}")
    factors, b = one_batch(LU, B if left else B.mT)
    out = column_major(b.shape, b)
    solve_factored(factors, pivots.expand(factors.shape[:-1]), b, out, adjoint if left else not adjoint)
    return out if left else out.mT
