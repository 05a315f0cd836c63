"""aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)"""

from blocks.determinants import determinants

OVERLOADS = ("aten::_linalg_slogdet",)
DTYPES = ("float32", "float64")


def wrapper(A):
    return determinants(A, "linalg.slogdet", True)
