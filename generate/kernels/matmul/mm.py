"""aten::mm(Tensor self, Tensor mat2) -> Tensor

One program instance computes each tile. Transposed views are read in place, without a copy.
"""

import torch
from blocks.complex_systems import complex_of_products, signed_parts
from blocks.matmul import matmul
from blocks.types import identical_dtypes

OVERLOADS = ("aten::mm",)
DTYPES = ("bfloat16", "complex64", "float16", "float32", "float64", "int32", "int64")


def wrapper(self, mat2):
    identical_dtypes(self, mat2)
    if self.dtype == torch.bool:
        raise RuntimeError(f"mm does not support {self.dtype}")
    if self.is_complex():
        (a, b, s), (c, d, t) = signed_parts(self), signed_parts(mat2)
        return complex_of_products(matmul(a, c), matmul(b, d), matmul(a, d), matmul(b, c), (s, t))
    return matmul(self, mat2)
