"""aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)

Eigenvalues are in no order, but conjugates beside each other; eigenvectors are of length 1.
"""

from blocks.eigenvectors import general_eigen

OVERLOADS = ("aten::linalg_eig",)
DTYPES = ("float32", "float64")


def wrapper(self):
    return general_eigen(self, True, "linalg.eig")
