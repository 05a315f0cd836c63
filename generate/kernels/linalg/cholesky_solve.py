"""aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"""

from blocks.cholesky import solve_rooted
from blocks.substitution import column_major, one_batch, square_rows
from blocks.types import identical_dtypes

OVERLOADS = ("aten::cholesky_solve",)
DTYPES = ("float32", "float64")


def wrapper(self, input2, upper=False):
    n = square_rows(input2, "cholesky_solve")
    identical_dtypes(self, input2)
    if self.dim() < 2 or self.shape[-2] != n:
        raise RuntimeError(f"cholesky_solve: right-hand side {tuple(self.shape)} does not fit {tuple(input2.shape)}")
    factor, b = one_batch(input2, self)
    return solve_rooted(factor, b, column_major(b.shape, b), upper)
