"""aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U,
    Tensor S, Tensor Vh)

`driver` names an algorithm in another library. It is validated, but all drivers return the same results here.
"""

from blocks.singular import singular

OVERLOADS = ("aten::_linalg_svd",)
DTYPES = ("float32", "float64")


def wrapper(A, full_matrices=False, compute_uv=True, *, driver=None):
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise RuntimeError(f"linalg.svd: driver must be gesvd, gesvdj or gesvda, got {driver}")
    return singular(A, full_matrices, compute_uv, "linalg.svd")
