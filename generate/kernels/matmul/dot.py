"""aten::dot(Tensor self, Tensor tensor) -> Tensor"""

import torch
from blocks.products import inner_product

OVERLOADS = ("aten::dot",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, tensor):
    if self.dtype == torch.bool:
        raise RuntimeError(f"dot does not support {self.dtype}")
    return inner_product(self, tensor)
