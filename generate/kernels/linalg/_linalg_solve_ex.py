"""aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU,
    Tensor pivots, Tensor info)

B is a batch of vectors if it has one dimension, or the shape of A without its last dimension. With
left=False, the transposed system is solved, and the result is contiguous. With left=True, the result has
contiguous columns.
"""

import torch
from blocks.complex_systems import complex_lu, complex_solve
from blocks.factorization import check_info, lu_factors, solve_factored
from blocks.substitution import column_major, one_batch, square_rows
from blocks.types import identical_dtypes

OVERLOADS = ("aten::_linalg_solve_ex",)
DTYPES = ("complex128", "complex64", "float32", "float64")


def wrapper(A, B, *, left=True, check_errors=False):
    n = square_rows(A, "linalg.solve", complex_too=True)
    identical_dtypes(A, B)
    vectors = B.dim() == 1 or B.shape == A.shape[:-1]
    b = B.unsqueeze(-1) if vectors else B
    if b.dim() < 2 or b.shape[-2 if left else -1] != n:
        raise RuntimeError(f"linalg.solve: right-hand side {tuple(B.shape)} does not fit {tuple(A.shape)}")
    factors, pivots, info = complex_lu(A) if A.is_complex() else lu_factors(A, "linalg.solve")
    if check_errors:
        check_info(info, "linalg.solve")
    t, b = one_batch(factors, b)
    shape = b.shape[:-1] if vectors else b.shape
    result = column_major(shape, b) if left and len(shape) > 1 else torch.empty(shape, dtype=b.dtype, device=b.device)
    out = result.unsqueeze(-1) if vectors else result
    exchanges = pivots.expand(t.shape[:-1])
    if not left:
        b, out = b.mT, out.mT
    if A.is_complex():
        complex_solve(t, exchanges, b, out, not left)
    else:
        solve_factored(t, exchanges, b, out, not left)
    return result, factors, pivots, info
