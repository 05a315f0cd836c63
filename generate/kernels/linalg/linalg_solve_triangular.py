"""aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) ->
    Tensor

With left=False, the transposed system is solved.
"""

from blocks.lazy_bits import resolved
from blocks.substitution import column_major, one_batch, solve_triangles, square_rows
from blocks.types import identical_dtypes

OVERLOADS = ("aten::linalg_solve_triangular",)
DTYPES = ("float32", "float64")


def wrapper(self, B, *, upper, left=True, unitriangular=False):
    n = square_rows(self, "linalg.solve_triangular")
    identical_dtypes(self, B)
    if B.dim() < 2 or B.shape[-2 if left else -1] != n:
        raise RuntimeError(
            f"linalg.solve_triangular: right-hand side {tuple(B.shape)} does not fit {tuple(self.shape)}"
        )
    t, b = one_batch(resolved(self), resolved(B))
    out = column_major(b.shape, b)
    if left:
        return solve_triangles(t, b, out, upper, unitriangular)
    return solve_triangles(t.mT, b.mT, out.mT, not upper, unitriangular).mT
