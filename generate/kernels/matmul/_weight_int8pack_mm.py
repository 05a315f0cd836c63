"""aten::_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor

Computes self @ mat2.t() * scales. mat2 is an int8 weight [N, K] with one scale per row.
"""

import torch
from blocks.int8_products import int8_matmul

OVERLOADS = ("aten::_weight_int8pack_mm",)
DTYPES = ("bfloat16", "float16", "float32")


def wrapper(self, mat2, scales):
    if self.dim() != 2 or mat2.dim() != 2 or mat2.dtype != torch.int8 or scales.shape != mat2.shape[:1]:
        raise RuntimeError(f"weight {mat2.dtype} {tuple(mat2.shape)} does not fit scales {tuple(scales.shape)}")
    if self.stride(1) != 1 or not scales.is_contiguous() or scales.dtype != self.dtype:
        raise RuntimeError(
            f"expected rows with stride 1, contiguous {self.dtype} scales, got {self.stride(1)}, {scales.dtype}"
        )
    return int8_matmul(self, mat2.t(), scales, self.dtype)
