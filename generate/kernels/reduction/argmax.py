"""aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor

Of equal elements, or NaN, the first.
"""

import torch
from blocks.reduction import index_alone, reduce, with_index

OVERLOADS = ("aten::argmax",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False):
    if self.dtype == torch.bool:
        raise RuntimeError(f"argmax of {self.dtype}")
    how = {"map": with_index, "indexed": True, "finish": index_alone, "common": self.dtype}
    return reduce("argmax", [self], None if dim is None else [dim], keepdim, dtype=torch.int64, **how)
