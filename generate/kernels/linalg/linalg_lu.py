"""aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"""

from blocks.factorization import lu_factors, permutation, unpacked

OVERLOADS = ("aten::linalg_lu",)
DTYPES = ("float32", "float64")


def wrapper(A, *, pivot=True):
    if not pivot:
        raise NotImplementedError("linalg.lu supports only pivot=True")
    factors, pivots, _ = lu_factors(A, "linalg.lu")
    return permutation(pivots, A.shape[-2], A.dtype), *unpacked(factors)
