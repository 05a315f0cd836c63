"""aten::_linalg_eigvals(Tensor self) -> Tensor

The order of the eigenvalues is unspecified, but conjugate pairs are adjacent.
"""

from blocks.eigenvectors import general_eigen

OVERLOADS = ("aten::_linalg_eigvals",)
DTYPES = ("float32", "float64")


def wrapper(self):
    return general_eigen(self, False, "linalg.eigvals")[0]
