"""aten::_int_mm(Tensor self, Tensor mat2) -> Tensor

Multiplies int8 matrices with int32 sums.
"""

import torch
from blocks.int8_products import int8_matmul

OVERLOADS = ("aten::_int_mm",)
DTYPES = ("int8",)


def wrapper(self, mat2):
    if self.dim() != 2 or mat2.dim() != 2 or mat2.dtype != torch.int8:
        raise RuntimeError(f"expected two int8 matrices, got {self.dim()} and {mat2.dim()} dimensions, {mat2.dtype}")
    return int8_matmul(self, mat2, None, torch.int32)
