"""aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor

If the source has fewer elements than the mask, the number of true mask elements is read from the device.
"""

import torch
from blocks.copies import copied
from blocks.creation import fill
from blocks.selection import move_selected, true_starts

OVERLOADS = ("aten::masked_scatter",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, mask, source, *, out=None):
    if mask.dtype != torch.bool or source.dtype != self.dtype:
        raise RuntimeError(f"expected a bool mask and a {self.dtype} source, got {mask.dtype} and {source.dtype}")
    if out is None:
        shape = torch.broadcast_shapes(self.shape, mask.shape)
        out = torch.empty(shape, dtype=self.dtype, device=self.device)
    source = source if source.is_contiguous() else copied(source)
    mask = mask.expand(out.shape)
    starts = true_starts(mask)
    if source.numel() < mask.numel() and starts.select(0, starts.shape[0] - 1).item() > source.numel():
        raise RuntimeError("the source has fewer elements than the mask has ones")
    if out is not self:
        fill(out, self)
    return move_selected("scatter", source, mask, starts, out, source.numel())
