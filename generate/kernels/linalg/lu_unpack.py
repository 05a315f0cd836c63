"""aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P,
    Tensor L, Tensor U)

Results that are not requested are empty tensors. If the pivots have an unexpected batch shape, they are
reshaped in memory order.
"""

import torch
from blocks.copies import copied
from blocks.factorization import permutation, unpacked

OVERLOADS = ("aten::lu_unpack",)
DTYPES = ("float32", "float64")


def wrapper(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    if LU_pivots.dtype != torch.int32:
        raise RuntimeError(f"lu_unpack: pivots must be int32, got {LU_pivots.dtype}")
    if LU_data.dim() < 2:
        raise RuntimeError(f"lu_unpack: expected matrices, got {tuple(LU_data.shape)}")
    size = (*LU_data.shape[:-2], min(LU_data.shape[-2:]))
    outs = [torch.empty(0, dtype=LU_data.dtype, device=LU_data.device) for _ in range(3)]
    if unpack_pivots:
        if tuple(LU_pivots.shape) != size:
            LU_pivots = (LU_pivots if LU_pivots.is_contiguous() else copied(LU_pivots)).view(size)
        outs[0] = permutation(LU_pivots, LU_data.shape[-2], LU_data.dtype)
    return outs[0], *(unpacked(LU_data) if unpack_data else outs[1:])
