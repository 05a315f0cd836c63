"""aten::_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)"""

from blocks.singular import eigen

OVERLOADS = ("aten::_linalg_eigh",)
DTYPES = ("float32", "float64")


def wrapper(A, UPLO="L", compute_v=True):
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"linalg.eigh: UPLO must be L or U, got {UPLO}")
    return eigen(A, UPLO in ("U", "u"), compute_v, "linalg.eigh")
