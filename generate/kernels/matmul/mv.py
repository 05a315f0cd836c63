"""aten::mv(Tensor self, Tensor vec) -> Tensor"""

import torch
from blocks.products import matrix_by_vector

OVERLOADS = ("aten::mv",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, vec):
    if self.dtype == torch.bool:
        raise RuntimeError(f"mv does not support {self.dtype}")
    return matrix_by_vector(self, vec)
