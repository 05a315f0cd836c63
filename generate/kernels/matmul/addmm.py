"""aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

self is broadcast through stride 0. It is not read if beta is 0. The matrices are not read if alpha is 0.
"""

import torch
from blocks.matmul import matmul, without_terms
from blocks.number_range import without_overflow

OVERLOADS = ("aten::addmm",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int32", "int64")


def wrapper(self, mat1, mat2, *, beta=1, alpha=1):
    if self.dtype == torch.bool:
        raise RuntimeError(f"addmm does not support {self.dtype}")
    if not self.dtype.is_floating_point:
        without_overflow(self.dtype, beta, alpha)
    if alpha == 0:
        mat1, mat2 = without_terms(mat1, mat2)
    bias = None if beta == 0 else self.expand(mat1.shape[0], mat2.shape[1])
    return matmul(mat1, mat2, bias, beta, alpha)
