"""aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor

If several elements go to one position, the last one is written.
"""

import torch
from blocks.creation import fill
from blocks.indexing_along import put_along
from blocks.number_range import without_overflow

OVERLOADS = ("aten::scatter.src", "aten::scatter.value")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, src, *, out=None):
    if not isinstance(src, torch.Tensor):
        without_overflow(self.dtype, src)
        src = fill(torch.empty((), dtype=self.dtype, device=self.device), src)
    return put_along(self, dim, index, src, False, out)
