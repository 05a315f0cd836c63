"""aten::_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float
    padding_value=0.) -> Tensor

Rows of an item beyond the maximum length are dropped.
"""

import torch
from blocks.jagged import item_offsets, move_jagged

OVERLOADS = ("aten::_jagged_to_padded_dense_forward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(values, offsets, max_lengths, padding_value=0.0):
    (length,), offsets = max_lengths, item_offsets(offsets)
    dense = torch.empty((offsets.shape[0] - 1, length, *values.shape[1:]), dtype=values.dtype, device=values.device)
    move_jagged(values, dense, offsets, padding_value)
    return dense
