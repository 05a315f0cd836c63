"""aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor"""

from blocks.cholesky import solve_rooted
from blocks.substitution import column_major, square_rows

OVERLOADS = ("aten::cholesky_inverse",)
DTYPES = ("float32", "float64")


def wrapper(self, upper=False):
    square_rows(self, "cholesky_inverse")
    return solve_rooted(self, None, column_major(self.shape, self), upper)
