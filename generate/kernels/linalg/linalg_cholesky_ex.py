"""aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"""

from blocks.cholesky import cholesky_factor
from blocks.factorization import check_info

OVERLOADS = ("aten::linalg_cholesky_ex",)
DTYPES = ("float32", "float64")


def wrapper(self, *, upper=False, check_errors=False):
    factor, info = cholesky_factor(self, upper, "linalg.cholesky_ex")
    if check_errors:
        check_info(info, "linalg.cholesky_ex")
    return factor, info
