"""aten::block_diag(Tensor[] tensors) -> Tensor"""

import torch
from blocks.creation import fill
from blocks.types import common_dtype

OVERLOADS = ("aten::block_diag",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(tensors):
    if any([t.dim() > 2 for t in tensors]):
        raise RuntimeError(
            f"block_diag needs tensors with at most two dimensions, got {[tuple(t.shape) for t in tensors]}"
        )
    sizes = [(1,) * (2 - t.dim()) + tuple(t.shape) for t in tensors]
    dtype = common_dtype(*tensors)
    rows, columns = sum([m for m, _ in sizes]), sum([n for _, n in sizes])
    out = fill(torch.empty((rows, columns), dtype=dtype, device=tensors[0].device), 0)
    row = column = 0
    for t, (m, n) in zip(tensors, sizes, strict=True):
        fill(out.narrow(0, row, m).narrow(1, column, n), t)
        row, column = row + m, column + n
    return out
