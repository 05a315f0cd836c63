"""aten::trace(Tensor self) -> Tensor

Integers are added up in int64.
"""

import torch
from blocks.reduction import reduce

OVERLOADS = ("aten::trace",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self):
    if self.dim() != 2:
        raise RuntimeError(f"trace needs a matrix, got {tuple(self.shape)}")
    dtype = self.dtype if self.is_floating_point() else torch.int64
    return reduce("sum", [self.diagonal()], None, dtype=dtype)
