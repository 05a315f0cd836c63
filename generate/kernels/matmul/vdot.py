"""aten::vdot(Tensor self, Tensor other) -> Tensor"""

import torch
from blocks.products import inner_product

OVERLOADS = ("aten::vdot",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, other):
    if self.dtype == torch.bool:
        raise RuntimeError(f"vdot does not support {self.dtype}")
    return inner_product(self, other)
