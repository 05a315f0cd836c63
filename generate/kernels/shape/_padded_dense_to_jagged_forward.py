"""aten::_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor

If total_L is None, the row count is read back from the last offset.
"""

import torch
from blocks.jagged import item_offsets, move_jagged

OVERLOADS = ("aten::_padded_dense_to_jagged_forward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(dense, offsets, total_L=None):
    offsets = item_offsets(offsets)
    items = offsets.shape[0] - 1
    if dense.dim() < 2 or (items and dense.shape[0] != items):
        raise RuntimeError(f"{offsets.shape[0]} offsets do not fit {tuple(dense.shape)}")
    total = offsets.select(0, items).item() if total_L is None else total_L
    rows = torch.empty((total, *dense.shape[2:]), dtype=dense.dtype, device=dense.device)
    if items:
        move_jagged(rows, dense, offsets, None)
    return rows
