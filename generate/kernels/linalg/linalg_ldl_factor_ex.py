"""aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD,
    Tensor pivots, Tensor info)

info is 0, or the number (from 1) of the first zero block in D. Only real matrices are supported, so
`hermitian` has no effect: they are symmetric.
"""

from blocks.factorization import check_info
from blocks.symmetric_factors import symmetric_factors

OVERLOADS = ("aten::linalg_ldl_factor_ex",)
DTYPES = ("float32", "float64")


def wrapper(self, *, hermitian=False, check_errors=False):
    factors, pivots, info = symmetric_factors(self, "linalg.ldl_factor_ex")
    if check_errors:
        check_info(info, "linalg.ldl_factor_ex")
    return factors, pivots, info
