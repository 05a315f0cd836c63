"""aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) ->
    (Tensor solution, Tensor cloned_coefficient)

`upper` describes A before `transpose` is applied.
"""

from blocks.copies import copied
from blocks.substitution import column_major, one_batch, solve_triangles, square_rows
from blocks.types import identical_dtypes

OVERLOADS = ("aten::triangular_solve",)
DTYPES = ("float32", "float64")


def wrapper(self, A, upper=True, transpose=False, unitriangular=False):
    n = square_rows(A, "triangular_solve")
    identical_dtypes(self, A)
    if self.dim() < 2 or self.shape[-2] != n:
        raise RuntimeError(f"triangular_solve: right-hand side {tuple(self.shape)} does not fit {tuple(A.shape)}")
    t, b = one_batch(A, self)
    clone = copied(t, column_major(t.shape, t))
    out = column_major(b.shape, b)
    return solve_triangles(t.mT if transpose else t, b, out, upper != transpose, unitriangular), clone
