"""aten::masked_select(Tensor self, Tensor mask) -> Tensor

The result's element count is read from the device.
"""

import torch
from blocks.selection import move_selected, true_starts

OVERLOADS = ("aten::masked_select",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, mask):
    if mask.dtype != torch.bool:
        raise RuntimeError(f"mask must be bool, got {mask.dtype}")
    x, mask = torch.broadcast_tensors(self, mask)
    starts = true_starts(mask)
    count = starts.select(0, starts.shape[0] - 1).item()
    out = torch.empty(count, dtype=self.dtype, device=self.device)
    return move_selected("select", x, mask, starts, out, count)
