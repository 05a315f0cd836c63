"""aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor

Only real matrices are supported, so `hermitian` has no effect: they are symmetric.
"""

import torch
from blocks.substitution import column_major, one_batch, square_rows
from blocks.symmetric_factors import solve_symmetric
from blocks.types import identical_dtypes

OVERLOADS = ("aten::linalg_ldl_solve",)
DTYPES = ("float32", "float64")


def wrapper(LD, pivots, B, *, hermitian=False):
    n = square_rows(LD, "linalg.ldl_solve")
    identical_dtypes(LD, B)
    if pivots.dtype not in (torch.int32, torch.int64) or pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"linalg.ldl_solve: pivots {pivots.dtype} {tuple(pivots.shape)} do not fit {tuple(LD.shape)}"
        )
    if B.dim() < 2 or B.shape[-2] != n:
        raise RuntimeError(f"linalg.ldl_solve: right-hand side {tuple(B.shape)} does not fit {tuple(LD.shape)}")
    factors, b = one_batch(LD, B)
    return solve_symmetric(factors, pivots.expand(factors.shape[:-1]), b, column_major(b.shape, b))
