"""aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots,
    Tensor info)

info is 0, or the number (from 1) of the first pivot that is 0.
"""

from blocks.factorization import check_info, lu_factors

OVERLOADS = ("aten::linalg_lu_factor_ex",)
DTYPES = ("float32", "float64")


def wrapper(A, *, pivot=True, check_errors=False):
    if not pivot:
        raise NotImplementedError("linalg.lu_factor supports only pivot=True")
    factors, pivots, info = lu_factors(A, "linalg.lu_factor_ex")
    if check_errors:
        check_info(info, "linalg.lu_factor_ex")
    return factors, pivots, info
