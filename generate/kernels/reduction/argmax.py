"""aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor

The index is that of the first NaN, or of the first among equal elements.
"""

import torch
from blocks.reduction import index_alone, reduce, with_index

OVERLOADS = ("aten::argmax",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False):
    if self.dtype == torch.bool:
        raise RuntimeError(f"argmax does not support {self.dtype}")
    options = {"map": with_index, "indexed": True, "finish": index_alone, "common": self.dtype}
    return reduce("argmax", [self], None if dim is None else [dim], keepdim, dtype=torch.int64, **options)
