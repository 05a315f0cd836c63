"""aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str?
    side=None, Tensor? sorter=None) -> Tensor
aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str?
    side=None, Tensor? sorter=None) -> Tensor
"""

import torch
from blocks.creation import new_full
from blocks.search import search_sorted
from blocks.types import common_dtype

OVERLOADS = ("aten::searchsorted.Tensor", "aten::searchsorted.Scalar")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    if not isinstance(self, torch.Tensor):
        self = new_full((), self, common_dtype(sorted_sequence, self), sorted_sequence.device)
    if not self.dim() and sorted_sequence.dim() != 1:
        raise RuntimeError(f"one value needs a sorted vector, got {tuple(sorted_sequence.shape)}")
    return search_sorted(sorted_sequence, self, out_int32, right, side, sorter)
