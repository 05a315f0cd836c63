"""aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor

self is broadcast. It is not read if beta is 0. The matrix and the vector are not read if alpha is 0.
"""

import torch
from blocks.number_range import without_overflow
from blocks.products import matrix_by_vector

OVERLOADS = ("aten::addmv",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, mat, vec, *, beta=1, alpha=1):
    if self.dtype == torch.bool:
        raise RuntimeError(f"addmv does not support {self.dtype}")
    if not self.dtype.is_floating_point:
        without_overflow(self.dtype, beta, alpha)
    if alpha == 0 and mat.shape[1:] == vec.shape:
        mat, vec = mat.narrow(1, 0, 0), vec.narrow(0, 0, 0)
    return matrix_by_vector(mat, vec, None if beta == 0 else self, beta, alpha)
