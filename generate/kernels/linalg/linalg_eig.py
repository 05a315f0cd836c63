"""aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)

The order of the eigenvalues is unspecified, but conjugate pairs are adjacent. Eigenvectors have length 1.
"""

from blocks.eigenvectors import general_eigen

OVERLOADS = ("aten::linalg_eig",)
DTYPES = ("float32", "float64")


def wrapper(self):
    return general_eigen(self, True, "linalg.eig")
