"""aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"""

from blocks.factorization import check_info, lu_factors, solve_factored
from blocks.substitution import column_major, square_rows

OVERLOADS = ("aten::linalg_inv_ex",)
DTYPES = ("float32", "float64")


def wrapper(A, *, check_errors=False):
    square_rows(A, "linalg.inv")
    factors, pivots, info = lu_factors(A, "linalg.inv")
    if check_errors:
        check_info(info, "linalg.inv")
    return solve_factored(factors, pivots, None, column_major(A.shape, A), False), info
